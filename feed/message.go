package feed

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/sendgate/sendgate"
)

// message is a user's consent as it travels, and when it was announced.
type message struct {
	User     sendgate.UserID            `json:"u"`
	Revision int64                      `json:"r"`
	Global   bool                       `json:"g,omitzero"`
	Hard     bool                       `json:"h,omitzero"`
	Settings map[string]map[string]bool `json:"s,omitzero"` // by topic and channel
	At       int64                      `json:"t"`          // Unix milliseconds, by the Redis that the change was read against
}

func encode(c sendgate.Consent, at time.Time) (string, error) {
	m := message{User: c.User, Revision: c.Revision, Global: c.Global, Hard: c.Hard, At: at.UnixMilli()}
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

func decode(text string) (c sendgate.Consent, at time.Time, err error) {
	var m message
	if err := jsonv2.Unmarshal([]byte(text), &m); err != nil {
		return c, at, err
	}
	if err := m.validate(); err != nil {
		return c, at, err
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
	return c, time.UnixMilli(m.At), nil
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

// announcement is what is published: where in which stream the message stands,
// and after which entry.
type announcement struct {
	partition int
	entry     entry
}

// entry is one entry of a stream.
type entry struct {
	id, previous string
	text         string // an encoded message
}

// noEntry stands before the first entry of a stream.
const noEntry = "0-0"

// parseAnnouncement reads `PARTITION ID PREVIOUS MESSAGE`, as announce.lua
// writes it.
func parseAnnouncement(payload string, partitions int) (a announcement, err error) {
	parts := strings.SplitN(payload, " ", 4)
	if len(parts) != 4 {
		return a, errors.New("an announcement has four parts")
	}
	if a.partition, err = strconv.Atoi(parts[0]); err != nil || a.partition < 0 || a.partition >= partitions {
		return a, fmt.Errorf("an announcement of partition %q, of %d", sendgate.Clip(parts[0]), partitions)
	}
	for _, id := range parts[1:3] {
		if !isID(id) {
			return a, fmt.Errorf("an announcement with an entry %q", sendgate.Clip(id))
		}
	}
	if parts[1] == noEntry {
		return a, errors.New("an announcement of no entry")
	}
	a.entry = entry{id: parts[1], previous: parts[2], text: parts[3]}
	return a, nil
}
