package protocol

// What a sweep does next.
const (
	sweepIdle = iota
	sweepRead // to learn
	sweepLearn
	sweepDecide // whether to carry on
	sweepLook   // into the cache
	sweepAnnounce
	sweepLog
	sweepClear
)

// sweepOn is prefs.Sweeper: sweep, learn, and for one user carryOn.
func (m *model) sweepOn(s state, gate int, emit emit) {
	g, name := &s.gates[gate], uint8(gate)
	w := &g.sweep
	switch w.phase {
	case sweepIdle:
		if !g.up || s.left.Sweeps == 0 || !m.at(m.SweepsAt, gate) {
			return
		}
		s.left.Sweeps--
		m.list(&s, gate)
		emit(step{"%s begins a sweep, and lists what is pending", name, 0}, s)
	case sweepRead:
		w.reading = reading{revision: s.store.revision}
		w.phase = sweepLearn
		emit(step{"%s reads revision %d from the store, to learn it", name, s.store.revision}, s)
	case sweepLearn:
		revision := w.reading.revision
		m.learn(&s, gate, revision, 0, w.current || m.SweepBeforeEpoch)
		w.reading = reading{}
		m.knows(&s, gate)
		emit(step{"%s knows the pending revision %d", name, revision}, s)
	case sweepDecide:
		next := s
		next.gates[gate].sweep = sweep{}
		leave := step{"%s carries nothing on in this sweep", name, 0}
		if g.seen.through >= w.listed && g.seen.since.stage != ripe && !m.ClearedAtOnce || !m.at(m.CarriesAt, gate) {
			emit(leave, next)
			return
		}
		w.current, w.reading = true, s.read(maxChanges+gate)
		w.phase = sweepLook
		emit(step{"%s reads revision %d from the store, to carry it on", name, s.store.revision}, s)
		emit(leave, next)
	case sweepLook:
		revision := w.reading.revision
		m.look(&s, gate)
		emit(step{"%s obeys revision %d, and looks whether Redis holds what is ripe", name, revision}, s)
	case sweepAnnounce, sweepLog, sweepClear:
		m.carryOn(s, gate, emit)
	}
}

// list begins a sweep. A gate that finds nothing pending knows everything.
func (m *model) list(s *state, gate int) {
	g := &s.gates[gate]
	w := &g.sweep
	*w = sweep{current: true, listed: s.store.revision}
	if s.store.pending == 0 {
		g.seen = sighting{}
		g.ready = true
		*w = sweep{}
		return
	}
	o, revision := &g.overlay, uint8(0)
	if o.there && o.current {
		revision = o.revision
	}
	if revision >= w.listed && o.heard {
		m.noteThrough(s, gate, revision)
	}
	if w.phase = sweepRead; max(g.seen.through, revision) >= w.listed {
		m.knows(s, gate)
	}
}

// knows is the moment from which a gate obeys every change that was pending
// when the sweep began. Those that were cleared before, it has from the stream
// as soon as it has caught up.
func (m *model) knows(s *state, gate int) {
	g := &s.gates[gate]
	g.ready = true
	g.floor = max(g.floor, g.sweep.listed)
	g.sweep.phase = sweepDecide
}

// look obeys what was read, and finds out whether what was seen through long
// ago is in Redis still.
func (m *model) look(s *state, gate int) {
	g := &s.gates[gate]
	w := &g.sweep
	m.learn(s, gate, w.reading.revision, 0, w.current || m.SweepBeforeEpoch)
	if w.reading.pending == 0 {
		*w = sweep{}
		return
	}
	seen := &g.seen
	w.phase, w.upTo = sweepAnnounce, 0
	switch held, ok := s.redis.cache.revision(); {
	case m.ClearedAtOnce:
		w.upTo = w.reading.revision
	case seen.since.stage != ripe || m.ThroughWhenHeard && (!g.live || !seen.read):
		if w.current && seen.through >= w.reading.revision { // the index has lagged
			*w = sweep{}
		}
	case ok && held >= seen.ripens || m.ClearedWithoutLook:
		w.upTo = seen.ripens
	default:
		*seen = sighting{}
	}
}

// carryOn announces, logs, and clears what may be.
func (m *model) carryOn(s state, gate int, emit emit) {
	g, name := &s.gates[gate], uint8(gate)
	w := &g.sweep
	revision := w.reading.revision
	switch w.phase {
	case sweepAnnounce:
		if w.reading.stale {
			*w = sweep{}
			emit(step{"what %s announces of revision %d is refused: too old", name, revision}, s)
			return
		}
		w.phase, w.reading.held = sweepLog, false
		if w.upTo > 0 && m.ClearedWithoutAnnouncing {
			emit(step{"%s does not announce revision %d again", name, revision}, s)
			return
		}
		m.announce(&s, revision)
		emit(step{"%s announces revision %d in its sweep", name, revision}, s)
	case sweepLog:
		s.store.logged |= w.reading.pending
		if w.current && !m.ThroughWhenHeard {
			m.noteThrough(&s, gate, revision)
		}
		w.phase = sweepClear
		if w.upTo == 0 || !w.current && !m.SightingsThroughGap {
			*w = sweep{}
		}
		emit(step{"%s logs what is pending, and has seen revision %d through", name, revision}, s)
	case sweepClear:
		cleared := w.upTo
		if s.store.revision == revision {
			pending := w.reading.pending &^ upTo(cleared)
			s.cleared = max(s.cleared, newest(s.store.pending&^pending))
			s.store.pending = pending
			if w.current {
				g.seen.ripens, g.seen.since, g.seen.read = g.seen.through, m.now(&s), false
			}
		}
		*w = sweep{}
		emit(step{"%s clears what is pending up to revision %d", name, cleared}, s)
	}
}

func (m *model) noteThrough(s *state, gate int, revision uint8) {
	seen := &s.gates[gate].seen
	seen.through = max(seen.through, revision)
	if seen.ripens == 0 {
		seen.ripens, seen.since = seen.through, m.now(s)
	}
}
