package protocol

// fail has the steps that nobody takes: time, Redis, and what breaks.
func (m *model) fail(s *state, emit emit) {
	m.age(s, emit)
	if now := (replica{s.redis.cache, s.redis.length}); s.left.Failovers > 0 && (s.copied != now || s.ages()) {
		next := *s
		next.replicate()
		emit(step{"what Redis holds is replicated", 0, 0}, next)
	}
	if s.left.Failovers > 0 {
		next := *s
		next.left.Failovers--
		next.lose(s.copied)
		emit(step{"Redis fails over to what was replicated", 0, 0}, next)
	}
	if s.left.Losses > 0 {
		next := *s
		next.left.Losses--
		next.lose(replica{})
		emit(step{"Redis loses everything", 0, 0}, next)
	}
	if s.left.Evictions > 0 && s.redis.cache != nothing {
		next := *s
		next.left.Evictions--
		next.redis.cache, next.redis.told = nothing, 0
		emit(step{"Redis evicts the user's key", 0, 0}, next)
	}
	for i := range s.gates {
		m.lifeAndDeath(*s, i, emit)
	}
}

// ages tells whether somebody waits for what Redis has to be replicated.
func (s *state) ages() bool {
	for i := range s.gates {
		if g := &s.gates[i]; g.seen.since.stage == aged || g.overlay.since.stage == aged {
			return true
		}
	}
	return false
}

// age lets more than 10 s pass since a moment: what was read before is refused
// from then on. Where Redis cannot fail over any more, it is as good as longer.
func (m *model) age(s *state, emit emit) {
	for i := range s.gates {
		g := &s.gates[i]
		if g.seen.ripens > 0 && g.seen.since.stage == justNow {
			next := *s
			m.pass(&next, &next.gates[i].seen.since)
			emit(step{"time passes since %s has seen revision %d through", uint8(i), g.seen.ripens}, next)
		}
		// In 10 minutes, what is in a connection is heard or lost.
		if m.Swaps > 0 && g.overlay.at != 0 && g.overlay.since.stage == justNow && g.coming == (message{}) {
			next := *s
			m.pass(&next, &next.gates[i].overlay.since)
			emit(step{"time passes since %s has learned revision %d", uint8(i), g.overlay.revision}, next)
		}
	}
}

func (m *model) pass(s *state, c *clock) {
	for i, r := range s.readings() {
		if c.before>>i&1 == 1 && !m.ReadAgeIgnored {
			r.stale = true
		}
	}
	c.before, c.stage = 0, aged
	if s.left.Failovers == 0 || m.RipeAtOnce {
		c.stage = ripe
	}
}

// lifeAndDeath kills a gate with all that it has in memory, or starts it. What
// its writers have sent to Redis may arrive yet.
func (m *model) lifeAndDeath(s state, gate int, emit emit) {
	g := &s.gates[gate]
	if m.at(m.Absent, gate) {
		return
	}
	if !g.up {
		// Once it is ready, it obeys whatever was acknowledged before.
		*g = gateState{up: true, ready: m.ReadyAtOnce, floor: s.store.revision}
		emit(step{"%s starts", uint8(gate), 0}, s)
		return
	}
	if s.left.Crashes == 0 || !m.at(m.CrashesAt, gate) {
		return
	}
	s.left.Crashes--
	*g = gateState{}
	for i := range s.checks {
		if c := &s.checks[i]; c.phase != checkIdle && int(c.gate) == gate {
			*c = check{phase: checkDone}
		}
	}
	emit(step{"%s dies", uint8(gate), 0}, s)
}
