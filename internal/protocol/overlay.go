package protocol

// learn is Overlay.put: a consent of a revision, where it stands, and whether it
// was true at some moment of the current epoch.
func (m *model) learn(s *state, gate int, revision uint8, at id, current bool) {
	m.put(s, gate, known{there: true, current: current, revision: revision, at: at})
}

func (m *model) put(s *state, gate int, k known) {
	old := &s.gates[gate].overlay
	switch {
	case old.there && old.revision > k.revision:
		return
	case old.there && old.revision == k.revision:
		k.current, k.heard = k.current || old.current, k.heard || old.heard
		k.since = old.since
		if old.at != 0 {
			k.at = old.at
		}
	default:
		k.since = m.now(s)
	}
	*old = k
}

// gap is Overlay.Gap: what was learned before is not exact any more, the filter
// is not current, and nothing that a sweeper has seen counts.
func (m *model) gap(s *state, gate int) {
	g := &s.gates[gate]
	g.overlay.current = g.overlay.current && m.ExactThroughGap
	g.overlay.heard = false
	g.covered = g.covered && m.CurrentThroughGap
	g.keeper.current, g.sweep.current = false, false
	if !m.SightingsThroughGap {
		g.seen = sighting{}
	}
}

// exact tells whether the overlay alone decides.
func (g *gateState) exact() bool { return g.overlay.there && g.overlay.current && g.live }

// byFilter tells whether the filter may decide by itself.
func (g *gateState) byFilter() bool { return !g.overlay.there && g.filter > 0 && g.covered && g.live }

// atLeast is the revision that an older record counts as absent by.
func (g *gateState) atLeast() uint8 {
	if g.overlay.there {
		return g.overlay.revision
	}
	return 0
}
