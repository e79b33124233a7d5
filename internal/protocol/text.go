package protocol

import (
	"fmt"
	"strings"
)

// step is one step, as a text with a place for the gate (%s) and one for a
// number (%d), or for what an entry says (%e).
type step struct {
	text   string
	gate   uint8
	number uint8
}

// String is the step in words.
func (s step) String() string {
	return strings.NewReplacer(
		"%s", gateName(int(s.gate)), "%d", fmt.Sprint(s.number), "%e", entry(s.number).String(),
	).Replace(s.text)
}

func gateName(gate int) string { return string(rune('A' + gate)) }

// String is what an entry says.
func (e entry) String() string {
	if e.text() == mark {
		return "mark"
	}
	return fmt.Sprint(uint8(e.text()))
}

func revisions(set uint8) string {
	var each []string
	for r := uint8(0); set>>r != 0; r++ {
		if set>>r&1 == 1 {
			each = append(each, fmt.Sprint(r))
		}
	}
	return "{" + strings.Join(each, " ") + "}"
}

// String is what a cache holds.
func (c cached) String() string {
	if revision, ok := c.revision(); ok {
		return fmt.Sprintf("R%d", revision)
	}
	if c == nothing {
		return "-"
	}
	return "lease"
}

// String is the state in one line; the package comment says how to read it.
func (s *state) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "store %d", s.store.revision)
	if s.store.pending != 0 {
		fmt.Fprintf(&b, " pending %s", revisions(s.store.pending))
	}
	fmt.Fprintf(&b, " | Redis %s [", s.redis.cache)
	for i, e := range s.redis.stream[:s.redis.length] {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(e.String())
	}
	fmt.Fprintf(&b, "] | %s | %s", s.gateLine(0), s.gateLine(1))
	return b.String()
}

func (s *state) gateLine(gate int) string {
	g := &s.gates[gate]
	switch {
	case !g.up:
		return gateName(gate) + " dead"
	case !g.ready:
		return gateName(gate) + " not ready"
	}
	line := gateName(gate) + " -"
	if g.overlay.there {
		line = fmt.Sprintf("%s %d", gateName(gate), g.overlay.revision)
		if !g.exact() {
			line += "?"
		}
	}
	if g.filter > 0 {
		line += fmt.Sprintf(" filter %d", s.snapshots[g.filter-1].revision)
		if !g.covered || !g.live {
			line += "?"
		}
	}
	if !g.live {
		line += " away"
	}
	return line
}
