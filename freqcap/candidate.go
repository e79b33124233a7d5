package freqcap

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/keyspace"
)

// candidate is an ask on its way to Redis.
type candidate struct {
	ask     *sendgate.CapAsk
	place   int // of the ask in the list that was handed in
	channel string
	parts   []part // one for each subject; the user's is the first
	wave    int
}

// spansSubjects tells whether the caps of a candidate count for more than the
// user.
func (c *candidate) spansSubjects() bool { return len(c.parts) > 1 }

// part is what a candidate, or a report, has to do with one subject's record.
type part struct {
	key      string
	record   string    // key of the user's record, of which the ask presumes something; empty otherwise
	id       string    // what is kept of the notification's there
	caps     []int     // of the ask, by their place there
	counters []counter // of these caps, and after them the links to other subjects
}

// idBytes is how much of the hash of a notification id is kept. Two ids of one
// subject's log are taken for one in one of 2^48 cases.
const idBytes = 6

// shortID is what is kept of a notification id: the first bytes of its 64-bit
// xxHash. Ids are scoped to the user, so that where several people are counted
// together the user is part of it.
func shortID(user sendgate.UserID, id string) string {
	if user != "" {
		id = string(user) + separator + id
	}
	return string(binary.BigEndian.AppendUint64(nil, xxhash.Sum64String(id))[:idBytes])
}

// channelTag is what is kept of a channel: 2 bytes of its hash. Channels whose
// tags are equal, one of 65,536 pairs, would give back each other's slots.
func channelTag(channel string) string {
	return string(binary.BigEndian.AppendUint16(nil, uint16(xxhash.Sum64String(channel))))
}

// partsOf sorts caps by the subjects that they count for. Where there are others
// than the user, the user's record has a link to each, so that a report that
// names the user alone finds them.
func partsOf(space *keyspace.Space, user sendgate.UserID, notification string, caps []sendgate.BoundCap, now time.Time) ([]part, error) {
	parts := make([]part, 1, 2)
	parts[0] = part{key: space.Caps("", string(user)), id: shortID("", notification), caps: make([]int, 0, len(caps)), counters: make([]counter, 0, len(caps))}
	links := map[string]counter{}
	for i := range caps {
		k, err := counterOf(&caps[i], now)
		if err != nil {
			return nil, err
		}
		at := 0
		if subject := caps[i].Subject; subject != "" {
			key := space.Caps(subject, caps[i].SubjectID)
			if at = slices.IndexFunc(parts, func(p part) bool { return p.key == key }); at < 0 {
				at = len(parts)
				parts = append(parts, part{key: key, id: shortID(user, notification)})
			}
			links[key] = linkTo(subject, caps[i].SubjectID, max(k.span, links[key].span, caps[i].Window.Milliseconds()))
		}
		parts[at].caps, parts[at].counters = append(parts[at].caps, i), append(parts[at].counters, k)
	}
	for _, p := range parts[1:] {
		parts[0].counters = append(parts[0].counters, links[p.key])
	}
	return parts, nil
}

// candidates prepares the asks that have to be put to Redis, and answers the
// others: those with a cap that cannot be counted and, unless only so many are
// to be taken, those without caps.
func (l *Limiter) candidates(asks []sendgate.CapAsk, taking bool, answers []sendgate.CapAnswer) []candidate {
	open, now := make([]candidate, 0, len(asks)), l.now()
	for i := range asks {
		ask := &asks[i]
		if len(ask.Caps) == 0 && !taking {
			answers[i].Admitted = true
			continue
		}
		parts, err := partsOf(l.space, ask.User, ask.NotificationID, ask.Caps, now)
		if err != nil {
			answers[i].Err = judgeError(err)
			continue
		}
		if ask.Presumed != "" {
			parts[0].record = l.space.Record(ask.User)
		}
		open = append(open, candidate{ask: ask, place: i, channel: channelTag(ask.Channel), parts: parts})
	}
	return open
}

// waves puts candidates into waves and sorts them accordingly. What is judged in
// one wave does not depend on each other but within one subject's record, where
// one script judges in order: candidates that share a subject with one before them
// that is to be charged for several, or that are themselves, wait for the next
// wave.
func waves(list []candidate) {
	type last struct {
		wave   int
		spread bool
	}
	seen := make(map[string]last, len(list))
	for i := range list {
		c := &list[i]
		spread := c.spansSubjects() && !c.ask.Look
		for _, p := range c.parts {
			if before, ok := seen[p.key]; ok && (spread || before.spread) {
				c.wave = max(c.wave, before.wave+1)
			} else if ok {
				c.wave = max(c.wave, before.wave)
			}
		}
		for _, p := range c.parts {
			seen[p.key] = last{c.wave, spread}
		}
	}
	slices.SortStableFunc(list, func(a, b candidate) int { return a.wave - b.wave })
}
