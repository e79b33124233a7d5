package protocol

// What the builder does next.
const (
	builderIdle = iota
	builderScan
	builderPublish
	builderMark // after the scan, where that is the defect
)

// build is rebuild.Builder.
func (m *model) build(s state, emit emit) {
	b := &s.builder
	switch b.phase {
	case builderIdle:
		if s.left.Builds == 0 {
			return
		}
		s.left.Builds--
		if b.phase = builderScan; !m.MarkAfterScan {
			b.snapshot.mark = m.add(&s, mark)
			emit(step{"the builder marks the stream", 0, 0}, s)
			return
		}
		emit(step{"the builder begins", 0, 0}, s)
	case builderScan:
		b.snapshot.revision = s.store.revision
		if b.phase = builderPublish; m.MarkAfterScan {
			b.phase = builderMark
		}
		emit(step{"the builder reads revision %d from the store", 0, s.store.revision}, s)
	case builderMark:
		b.snapshot.mark = m.add(&s, mark)
		b.phase = builderPublish
		emit(step{"the builder marks the stream", 0, 0}, s)
	case builderPublish:
		s.snapshots[s.published] = b.snapshot
		s.published++
		*b = builder{}
		emit(step{"the builder publishes snapshot %d", 0, s.published}, s)
	}
}

// What a keeper does next.
const (
	keeperIdle = iota
	keeperReplay
	keeperSwap
	keeperTrim
)

// keep is bloom.Keeper: cover, install or recover, and use.
func (m *model) keep(s state, gate int, emit emit) {
	g, name := &s.gates[gate], uint8(gate)
	k := &g.keeper
	switch k.phase {
	case keeperIdle:
		uncovered := g.filter > 0 && g.live && !g.covered
		swaps := s.published > g.filter && s.left.Swaps > 0
		if !g.up || !g.wasLive || !swaps && !uncovered || !m.at(m.KeepersAt, gate) {
			return
		}
		k.candidate = g.filter
		if swaps {
			k.candidate = s.published
			s.left.Swaps--
		}
		k.phase, k.current, k.at = keeperReplay, true, s.snapshots[k.candidate-1].mark
		k.trims = g.overlay.since.stage == ripe || m.TrimAtOnce
		g.overlay.replayed = false // a later replay confirms only what it brings itself
		if m.SwapBeforeReplay {
			g.filter, g.covered = k.candidate, true
		}
		emit(step{"%s begins to replay from the mark of snapshot %d", name, k.candidate}, s)
	case keeperReplay:
		m.replay(s, gate, emit)
	case keeperSwap:
		g.filter, g.covered = k.candidate, k.current || m.CurrentThroughGap
		k.phase = keeperTrim
		emit(step{"%s takes snapshot %d into use", name, k.candidate}, s)
	case keeperTrim:
		candidate, trims := k.candidate, k.trims && (g.overlay.since.stage == ripe || m.TrimAtOnce)
		*k = keeper{}
		covers := g.overlay.at != 0 && g.overlay.at <= s.snapshots[candidate-1].mark || m.TrimWithoutPosition
		if g.overlay.there && covers && trims {
			next := s
			next.gates[gate].overlay = known{}
			emit(step{"%s drops from its overlay what snapshot %d has", name, candidate}, next)
		}
		emit(step{"%s keeps its overlay beside snapshot %d", name, candidate}, s)
	}
}

// replay takes the next entry, or finds the end or that the entry before is not
// there any more.
func (m *model) replay(s state, gate int, emit emit) {
	g, name := &s.gates[gate], uint8(gate)
	k := &g.keeper
	next := s.redis.after(k.at)
	switch {
	case !s.redis.holds(k.at):
		m.lacksCover(&s, gate)
		emit(step{"%s finds that the stream does not lead on from snapshot %d", name, k.candidate}, s)
	case next < s.redis.length:
		k.at = s.redis.at(next)
		text := s.redis.stream[next].text()
		if text != mark {
			known := known{there: true, revision: uint8(text), at: k.at, replayed: true, current: m.ReplayExact}
			m.put(&s, gate, known)
		}
		emit(step{"%s replays an entry: %e", name, uint8(text)}, s)
	default:
		if o := &g.overlay; o.replayed {
			o.replayed, o.current = false, o.current || k.current
		}
		if k.phase = keeperSwap; !k.current && !m.CurrentThroughGap {
			m.lacksCover(&s, gate)
		}
		emit(step{"%s has replayed to the end", name, 0}, s)
	}
}

// lacksCover is what becomes of a snapshot that cannot be covered: it is used
// where nothing better is.
func (m *model) lacksCover(s *state, gate int) {
	g := &s.gates[gate]
	if g.filter == 0 || g.live && !g.covered {
		g.filter, g.covered = g.keeper.candidate, false
	}
	g.keeper = keeper{}
}
