package protocol

// What a check does next.
const (
	checkIdle = iota
	checkLease
	checkRead
	checkFill
	checkDone
)

// ask is prefs.Reader.load, for a check that has missed the record in the
// cache. Checks that are answered at once need no step: what they would be
// answered is looked at in every state.
func (m *model) ask(s *state, emit emit) {
	for i := range s.checks {
		next := *s
		c := &next.checks[i]
		switch c.phase {
		case checkIdle:
			if s.left.Checks > 0 {
				m.miss(s, i, emit)
			}
			return // checks begin in order
		case checkLease:
			held := next.lease(i, c.atLeast)
			c.mayFill, c.phase = held == leaseOf(i), checkRead
			if there, ok := held.revision(); ok {
				c.phase, c.revision = checkDone, there
			}
			emit(step{"a check at %s asks for a lease", c.gate, 0}, next)
		case checkRead:
			c.revision = s.store.revision
			if c.phase = checkDone; c.mayFill || m.LeaseIgnored {
				c.phase = checkFill
			}
			emit(step{"a check at %s reads revision %d from the store", c.gate, c.revision}, next)
		case checkFill:
			revision := c.revision
			c.phase = checkDone
			m.fill(&next, i, revision)
			emit(step{"a check at %s fills the cache with revision %d, if it still may", c.gate, revision}, next)
		}
	}
}

func (m *model) miss(s *state, i int, emit emit) {
	for gate := range s.gates {
		g := &s.gates[gate]
		held, ok := s.redis.cache.revision()
		if !g.up || !g.ready || g.exact() || ok && held >= g.atLeast() || !m.at(m.ChecksAt, gate) {
			continue
		}
		next := *s
		next.left.Checks--
		next.checks[i] = check{phase: checkLease, gate: uint8(gate), atLeast: g.atLeast(), floor: g.floor}
		emit(step{"a check at %s misses the record", uint8(gate), 0}, next)
	}
}
