package protocol

// mostRounds is more than a fair run needs of rounds.
const mostRounds = 12

// fairRun takes a state to its rest: no more faults come, and everybody does
// what they do every few seconds until nothing changes. Of what is in flight
// only the requests' own announcements are lost, which is the worst that can
// become of them.
type fairRun struct {
	*model
	state  state
	told   func(step, *state) // may be nil
	broken string
}

// rest runs from a state and returns the promise that is broken on the way or
// in the end. known are states from which a fair run is known to go well, and
// is told of more.
func (m *model) rest(s state, known map[state]struct{}, told func(step, *state)) string {
	fair := *m
	fair.FollowersAt, fair.SweepsAt, fair.CarriesAt, fair.KeepersAt = Both, Both, Both, Both
	r := &fairRun{model: &fair, state: s, told: told}
	r.state.left = Budget{}
	r.state.loseRequests()
	r.state.replicated()
	for range mostRounds {
		before := r.state
		if _, ok := known[before]; ok {
			return ""
		}
		if r.round(); r.broken != "" {
			return r.broken
		}
		known[before] = struct{}{}
		if r.state == before {
			return r.brokenAtRest(&r.state)
		}
	}
	return "nothing comes to rest"
}

// loseRequests has no request announce anything any more.
func (s *state) loseRequests() {
	for i := range s.writers {
		if s.writers[i].phase == writerHolds {
			s.writers[i] = writer{phase: writerDone}
		}
	}
}

// round gives everybody one turn.
func (r *fairRun) round() {
	r.all(func(e emit) { r.write(&r.state, e) })
	r.all(func(e emit) { r.ask(&r.state, e) })
	r.all(func(e emit) { r.build(r.state, e) })
	r.all(func(e emit) { r.fail(&r.state, e) })
	for i := range r.state.gates {
		if !r.state.gates[i].up {
			continue
		}
		g := &r.state.gates[i]
		for r.one(func(e emit) { r.follow(&r.state, i, e) }) {
			if g.live && g.coming == (message{}) && g.cursor == r.state.redis.last() {
				break
			}
		}
		r.state.left.Sweeps = 1
		r.all(func(e emit) { r.sweepOn(r.state, i, e) })
		for r.one(func(e emit) { r.keep(r.state, i, e) }) && r.state.gates[i].keeper.phase != keeperIdle {
			continue
		}
	}
}

// all takes steps of an actor until it has none.
func (r *fairRun) all(actor func(emit)) {
	for r.one(actor) {
		continue
	}
}

// one takes the step that an actor offers first, which is the one that gets on
// with its work.
func (r *fairRun) one(actor func(emit)) (taken bool) {
	if r.broken != "" {
		return false
	}
	var next state
	actor(func(done step, s state) {
		if taken {
			return
		}
		taken, next = true, s
		if r.told != nil {
			r.told(done, &s)
		}
	})
	if taken {
		r.state = next
		r.broken = r.model.broken(&r.state)
	}
	return taken
}
