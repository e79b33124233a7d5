package protocol

// follow is feed.Follower.
func (m *model) follow(s *state, gate int, emit emit) {
	g, name := &s.gates[gate], uint8(gate)
	if !g.up || !m.at(m.FollowersAt, gate) {
		return
	}
	if !g.subscribed {
		next := *s
		next.gates[gate].subscribed = true
		emit(step{"%s subscribes", name, 0}, next)
		return
	}
	if g.coming != (message{}) && !g.away {
		next := *s
		m.hear(&next, gate)
		emit(step{"%s hears what was published: %e", name, uint8(g.coming.text)}, next)
	}
	next := *s
	switch {
	case !g.read:
		m.beginToFollow(&next, gate)
		emit(step{"%s begins to follow the stream at its end", name, 0}, next)
	case g.cursor != 0 && !s.redis.holds(g.cursor):
		m.missed(&next, gate)
		emit(step{"%s finds its cursor gone from the stream: a gap", name, 0}, next)
	default:
		m.catchUp(&next, gate)
		emit(step{"%s reads the stream to its end", name, 0}, next)
	}
	if g.coming != (message{}) {
		next := *s
		next.gates[gate].coming = message{}
		emit(step{"what was published does not reach %s: %e", name, uint8(g.coming.text)}, next)
	}
	if s.left.Resets > 0 && m.at(m.ResetsAt, gate) {
		next := *s
		next.left.Resets--
		next.gates[gate].reset()
		emit(step{"%s loses its connection", name, 0}, next)
	}
}

func (g *gateState) reset() { g.subscribed, g.live, g.coming = false, false, message{} }

// hear takes a message that follows the cursor. One that does not is passed
// over: that it makes the follower read the stream is a step of its own, which
// may come at any time.
func (m *model) hear(s *state, gate int) {
	g := &s.gates[gate]
	if heard := g.coming; g.read && heard.previous == g.cursor {
		m.take(s, gate, heard.at, heard.text)
	}
	g.coming = message{}
}

func (m *model) take(s *state, gate int, at id, text entry) {
	s.gates[gate].cursor = at
	if text != mark {
		m.put(s, gate, known{there: true, current: true, heard: true, revision: uint8(text), at: at})
	}
}

// beginToFollow gives a stream its first cursor, which is a gap too.
func (m *model) beginToFollow(s *state, gate int) {
	if s.redis.length == 0 {
		m.add(s, mark)
	}
	s.gates[gate].cursor, s.gates[gate].read = s.redis.last(), true
	m.gap(s, gate)
	m.caughtUp(s, gate)
}

func (m *model) missed(s *state, gate int) {
	g := &s.gates[gate]
	g.cursor, g.away = 0, true
	if !m.GapNotReported {
		g.live = false
		m.gap(s, gate)
	}
}

// catchUp reads from the cursor, or from the beginning after a gap, to the end.
func (m *model) catchUp(s *state, gate int) {
	if m.NoCursorIsAGap && s.gates[gate].cursor == 0 {
		m.gap(s, gate)
		if s.redis.length == 0 {
			m.add(s, mark)
		}
	}
	for i := s.redis.after(s.gates[gate].cursor); i < s.redis.length; i++ {
		m.take(s, gate, s.redis.at(i), s.redis.stream[i].text())
	}
	m.caughtUp(s, gate)
}

// caughtUp makes the gate live. From now on it may not be behind what is not
// pending any more.
func (m *model) caughtUp(s *state, gate int) {
	g := &s.gates[gate]
	g.live, g.wasLive, g.away = true, true, false
	g.seen.read = m.ThroughWhenHeard && g.seen.since.stage == ripe
	g.floor = max(g.floor, s.cleared)
}
