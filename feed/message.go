package feed

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/sendgate/sendgate"
)

// message is a user's consent as it travels.
type message struct {
	User     sendgate.UserID            `json:"u"`
	Revision int64                      `json:"r"`
	Global   bool                       `json:"g,omitzero"`
	Hard     bool                       `json:"h,omitzero"`
	Settings map[string]map[string]bool `json:"s,omitzero"` // by topic and channel
}

func encode(c sendgate.Consent) (string, error) {
	m := message{User: c.User, Revision: c.Revision, Global: c.Global, Hard: c.Hard}
	for s, on := range c.Settings {
		if m.Settings == nil {
			m.Settings = map[string]map[string]bool{}
		}
		if m.Settings[s.Topic] == nil {
			m.Settings[s.Topic] = map[string]bool{}
		}
		m.Settings[s.Topic][s.Channel] = on
	}
	if err := m.validate(); err != nil {
		return "", err
	}
	data, err := jsonv2.Marshal(m, jsonv2.Deterministic(true))
	return string(data), err
}

func decode(text string) (c sendgate.Consent, err error) {
	var m message
	if err := jsonv2.Unmarshal([]byte(text), &m); err != nil {
		return c, err
	}
	if err := m.validate(); err != nil {
		return c, err
	}
	c = sendgate.Consent{User: m.User, Revision: m.Revision, Global: m.Global, Hard: m.Hard}
	for topic, channels := range m.Settings {
		for channel, on := range channels {
			if c.Settings == nil {
				c.Settings = sendgate.Settings{}
			}
			c.Settings[sendgate.Setting{Topic: topic, Channel: channel}] = on
		}
	}
	return c, nil
}

// validate refuses what nobody may announce: what is sent is what is
// understood, or one message would be a gap at every gate.
func (m *message) validate() error {
	if fault := m.User.Validate("u"); fault != nil {
		return fault
	}
	if m.Revision < 1 {
		return errors.New("a message without a revision")
	}
	return nil
}

// announcement is what is published: an entry and the partition in whose stream
// it stands; or that there is a filter of a generation, which is in no stream.
type announcement struct {
	partition int
	entry     entry
	snapshot  int64 // 0 for an entry
}

// snapshotPrefix begins the announcement of a filter. No partition's number
// does.
const snapshotPrefix = "filter "

// parseAnnouncement reads `PARTITION ID PREVIOUS TEXT`, as announce.lua and
// position.lua write it, and `filter GENERATION`.
func parseAnnouncement(payload string, partitions int) (a announcement, err error) {
	if generation, ok := strings.CutPrefix(payload, snapshotPrefix); ok {
		return parseSnapshot(generation)
	}
	parts := strings.SplitN(payload, " ", 4)
	if len(parts) != 4 {
		return a, errors.New("an announcement has four parts")
	}
	if a.partition, err = strconv.Atoi(parts[0]); err != nil || a.partition < 0 || a.partition >= partitions {
		return a, fmt.Errorf("an announcement of partition %q, of %d", sendgate.Clip(parts[0]), partitions)
	}
	if a.entry.at, err = sendgate.ParseOffset(parts[1]); err != nil {
		return a, fmt.Errorf("an announcement of an entry: %w", err)
	}
	if a.entry.previous, err = sendgate.ParseOffset(parts[2]); err != nil {
		return a, fmt.Errorf("an announcement of the entry after another: %w", err)
	}
	if a.entry.at == noEntry {
		return a, errors.New("an announcement of no entry")
	}
	a.entry.text = parts[3]
	return a, nil
}

func parseSnapshot(generation string) (a announcement, err error) {
	a.snapshot, err = strconv.ParseInt(generation, 10, 64)
	if err != nil || a.snapshot < 1 || strconv.FormatInt(a.snapshot, 10) != generation {
		return announcement{}, fmt.Errorf("an announcement of a filter's generation %q", sendgate.Clip(generation))
	}
	return a, nil
}
