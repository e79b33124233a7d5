package protocol

// What a writer does next.
const (
	writerIdle  = iota
	writerHolds // what it has written, to be announced
	writerDone
)

// write is a change at a gate: service.go and write.go, and of carrier.go the
// announcement. The clock of Redis is read before the write, and what was
// written is announced, if ever: the limit of the request may cut it off.
//
// That it is durable, is obeyed by its gate and is answered with 200 is one
// step here. There is no I/O between the first two, and an answer that comes
// later, or never, has nobody rely on more.
func (m *model) write(s *state, emit emit) {
	for i := range s.writers {
		switch w := &s.writers[i]; w.phase {
		case writerIdle:
			if s.left.Changes > 0 {
				for g := range s.gates {
					if s.gates[g].up && m.at(m.WritersAt, g) {
						m.begin(*s, i, g, emit)
					}
				}
			}
			return // writers begin in order
		case writerHolds:
			next := *s
			next.writers[i] = writer{phase: writerDone}
			if w.reading.stale {
				emit(step{"what %s announces of its revision %d is refused: too old", w.gate, w.reading.revision}, next)
				continue
			}
			m.announce(&next, w.reading.revision)
			emit(step{"%s announces its revision %d", w.gate, w.reading.revision}, next)
		}
	}
}

func (m *model) begin(s state, i, gate int, emit emit) {
	s.left.Changes--
	s.store.revision++
	s.store.pending |= 1 << s.store.revision
	g, revision := &s.gates[gate], s.store.revision
	s.writers[i] = writer{phase: writerHolds, gate: uint8(gate), reading: s.read(i)}
	if m.OnlySweepsAnnounce {
		s.writers[i] = writer{phase: writerDone}
	}
	g.floor = max(g.floor, revision)
	if !m.OwnOverlayNotTold {
		m.learn(&s, gate, revision, 0, true)
	}
	emit(step{"%s writes revision %d, obeys it, and answers 200", uint8(gate), revision}, s)
}

// read reads the record, after the clock of Redis, into one of the places for
// readings: each writer has one, and each sweep.
func (s *state) read(place int) reading {
	for i := range s.gates {
		s.gates[i].seen.since.before &^= 1 << place
		s.gates[i].overlay.since.before &^= 1 << place
	}
	return reading{revision: s.store.revision, pending: s.store.pending, held: true}
}

// now is a clock that begins to count.
func (m *model) now(s *state) clock {
	var before uint8
	for i, r := range s.readings() {
		if r.held && !r.stale {
			before |= 1 << i
		}
	}
	return clock{before: before}
}

// readings are all places for readings.
func (s *state) readings() (all [maxChanges + gates]*reading) {
	for i := range s.writers {
		all[i] = &s.writers[i].reading
	}
	for i := range s.gates {
		all[maxChanges+i] = &s.gates[i].sweep.reading
	}
	return all
}
