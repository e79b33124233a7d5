package protocol

import "fmt"

// answers are the revisions that a check which is asked at a gate now may be
// answered by, as a set. People's settings differ from one revision to the next
// in any way, so that for any snapshot there is a check that it decides alone:
// a hit rejects, and an essential check is answered by a miss.
func (m *model) answers(s *state, gate int) (set uint8) {
	g := &s.gates[gate]
	if g.exact() {
		return 1 << g.overlay.revision
	}
	if g.byFilter() {
		set = 1 << s.snapshots[g.filter-1].revision
	}
	if held, ok := s.redis.cache.revision(); ok && (held >= g.atLeast() || m.KnownRevisionIgnored) {
		return set | 1<<held
	}
	return set | 1<<s.store.revision
}

// broken says which promise a state breaks, "" if none.
func (m *model) broken(s *state) string {
	for i := range s.gates {
		g := &s.gates[i]
		if !g.up || !g.ready {
			continue
		}
		if older := m.answers(s, i) & (upTo(g.floor) >> 1); older != 0 {
			return fmt.Sprintf("%s answers by revision %d, and must know %d", gateName(i), newest(older), g.floor)
		}
	}
	for _, c := range s.checks {
		if c.phase == checkDone && c.revision < c.floor {
			return fmt.Sprintf("a check at %s was answered by revision %d, and its gate must have known %d", gateName(int(c.gate)), c.revision, c.floor)
		}
	}
	held, ok := s.redis.cache.revision()
	switch {
	case ok && held < s.redis.told:
		return fmt.Sprintf("the cache holds revision %d, and %d was announced", held, s.redis.told)
	case ok && held < s.cleared:
		return fmt.Sprintf("the cache holds revision %d, and %d is not pending any more", held, s.cleared)
	}
	if lacks := s.pastClearing() &^ s.store.logged; lacks != 0 {
		return fmt.Sprintf("revisions %s are neither pending nor logged", revisions(lacks))
	}
	if known, ok := s.atBest(); ok && known < s.cleared {
		return fmt.Sprintf("a gate that starts now would know revision %d by the newest snapshot and the stream, and %d is not pending any more", known, s.cleared)
	}
	return ""
}

// pastClearing are the revisions that were pending and are not any more.
func (s *state) pastClearing() uint8 { return upTo(s.store.revision) &^ s.store.pending &^ 1 }

// atBest is what the newest snapshot and the stream tell a gate that knows
// nothing else, if the stream leads on from the snapshot.
func (s *state) atBest() (revision uint8, ok bool) {
	if s.published == 0 {
		return 0, false
	}
	newest := s.snapshots[s.published-1]
	if !s.redis.holds(newest.mark) {
		return 0, false
	}
	revision = newest.revision
	for i := s.redis.after(newest.mark); i < s.redis.length; i++ {
		if text := s.redis.stream[i].text(); text != mark {
			revision = max(revision, uint8(text))
		}
	}
	return revision, true
}

// brokenAtRest says which promise is broken when nothing is in flight any more
// and every gate has caught up and swept.
func (m *model) brokenAtRest(s *state) string {
	newest := s.store.revision
	switch held, ok := s.redis.cache.revision(); {
	case s.store.pending != 0:
		return fmt.Sprintf("revisions %s are pending for ever", revisions(s.store.pending))
	case s.store.logged|1 != upTo(newest):
		return fmt.Sprintf("of %d revisions, %s are logged", newest, revisions(s.store.logged))
	case ok && held != newest:
		return fmt.Sprintf("the cache holds revision %d for ever, and the store %d", held, newest)
	}
	for i := range s.gates {
		if m.at(m.Absent, i) {
			continue
		}
		if set := m.answers(s, i); set != 1<<newest {
			return fmt.Sprintf("%s answers by revisions %s for ever, and the store holds %d", gateName(i), revisions(set), newest)
		}
	}
	return ""
}
