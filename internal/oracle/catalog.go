package oracle

import (
	"slices"
	"strconv"
	"time"
)

// Catalog is the operator's file. It is trusted to be a good one. Its JSON is
// the same as the file's YAML, so that one value can be given to both sides.
type Catalog struct {
	DefaultTimezone string              `json:"default_timezone"`
	Channels        []string            `json:"channels"`
	Categories      map[string]Category `json:"categories"`
	Topics          map[string]Topic    `json:"topics"`
}

// Category is one policy group.
type Category struct {
	Class        string         `json:"class"`
	InQuietHours string         `json:"in_quiet_hours,omitempty"`
	OnCap        string         `json:"on_cap,omitempty"`
	Caps         []Cap          `json:"caps,omitempty"`
	UserCaps     *UserCaps      `json:"user_caps,omitempty"`
	AllowedHours []AllowedHours `json:"allowed_hours,omitempty"`
}

// Cap is one frequency cap of a category.
type Cap struct {
	By     []string `json:"by"`
	Window string   `json:"window"`
	Limit  int      `json:"limit"`
}

// UserCaps lets users set caps of their own.
type UserCaps struct {
	Ceiling int `json:"ceiling"`
}

// AllowedHours is a window outside which the category is quiet. No channels
// means every channel.
type AllowedHours struct {
	Channels []string `json:"channels,omitempty"`
	Start    string   `json:"start"`
	End      string   `json:"end"`
	Days     []string `json:"days,omitempty"`
}

// Topic is one topic, with its default and the exceptions from it.
type Topic struct {
	Category string            `json:"category"`
	Default  string            `json:"default,omitempty"`
	Channels map[string]string `json:"channels,omitempty"`
}

func (c Category) essential() bool { return c.Class == "essential" }

func (c Category) inQuietHours() string {
	switch {
	case c.InQuietHours != "":
		return c.InQuietHours
	case c.Class == "marketing":
		return "defer"
	}
	return "ignore"
}

func (c Category) onCap() string {
	if c.OnCap != "" {
		return c.OnCap
	}
	return "suppress"
}

func (t Topic) defaultOn(channel string) bool {
	if word := t.Channels[channel]; word != "" {
		return word == "on"
	}
	return t.Default != "off"
}

// switchedOff are the two counts that an unsubscribe-all answers with.
func (c Catalog) switchedOff() (topics, pairs int) {
	for _, t := range c.Topics {
		if !c.Categories[t.Category].essential() {
			topics++
		}
	}
	return topics, topics * len(c.Channels)
}

func (c Catalog) hasChannel(name string) bool { return slices.Contains(c.Channels, name) }

// Length reads `90s`, `15m`, `24h`, `7d`.
func Length(s string) (time.Duration, bool) {
	units := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}
	if len(s) < 2 || s[0] < '1' || s[0] > '9' || len(s) > 10 {
		return 0, false
	}
	n, err := strconv.Atoi(s[:len(s)-1])
	unit := units[s[len(s)-1]]
	if err != nil || unit == 0 {
		return 0, false
	}
	return time.Duration(n) * unit, true
}
