package protocol

// redis is what one Redis holds: the user's record or a lease, and the stream.
type redis struct {
	cache  cached
	told   uint8 // the newest revision that was announced since the key was last taken away
	branch uint8 // how often something was lost
	length uint8
	stream [maxEntries]entry
}

// replica is what another Redis has of that: the record as it was, and the
// beginning of the stream.
type replica struct {
	cache  cached
	length uint8
}

// cached is what the user's key holds: nothing, the lease of a check, or a
// record.
type cached uint8

const nothing cached = 0

func leaseOf(check int) cached     { return cached(1 + check) }
func record(revision uint8) cached { return cached(0x10 + revision) }

// revision is that of the record, if there is one.
func (c cached) revision() (revision uint8, ok bool) { return uint8(c - 0x10), c >= 0x10 }

// id is an entry's id: in its upper bits the branch, so that what another
// master has put in the place of a lost entry has another one, and a later one.
// 0 is before every entry.
type id uint8

// entry is what an entry says, with the branch that it was put into. A mark
// says nothing.
type entry uint8

const mark entry = 0x1f

func (e entry) branch() uint8            { return uint8(e) >> 5 }
func (e entry) text() entry              { return e & 0x1f }
func (r *redis) at(index uint8) id       { return id(r.stream[index].branch()<<5 | (index + 1)) }
func (i id) index() uint8                { return uint8(i)&0x1f - 1 }
func (r *redis) holds(i id) bool         { return i != 0 && i.index() < r.length && r.at(i.index()) == i }
func (r *redis) after(i id) (next uint8) { return uint8(i) & 0x1f } // what stands after an entry, or after none

func (r *redis) last() id {
	if r.length == 0 {
		return 0
	}
	return r.at(r.length - 1)
}

// message is an entry as it is published.
type message struct {
	at, previous id
	text         entry
}

// add appends an entry to the stream and publishes it. A connection holds one
// message: another one is lost, as any may be.
func (m *model) add(s *state, text entry) id {
	r := &s.redis
	previous := r.last()
	r.stream[r.length] = text | entry(r.branch<<5)
	r.length++
	for i := range s.gates {
		if g := &s.gates[i]; g.subscribed && g.coming == (message{}) && !m.at(m.Silent, i) {
			g.coming = message{at: r.last(), previous: previous, text: text}
		}
	}
	return r.last()
}

// announce is announce.lua, but for the age of the reading.
func (m *model) announce(s *state, revision uint8) {
	if held, ok := s.redis.cache.revision(); ok && held > revision && !m.AnnounceWithoutCompare {
		return
	}
	s.redis.cache, s.redis.told = record(revision), max(s.redis.told, revision)
	m.add(s, entry(revision))
	for i := range s.gates {
		if o := &s.gates[i].overlay; o.since.stage == untold && o.revision <= revision {
			o.since = m.now(s)
		}
	}
}

// lease is lease.lua: it returns what the key holds afterwards.
func (s *state) lease(check int, atLeast uint8) cached {
	held := s.redis.cache
	revision, isRecord := held.revision()
	if held != nothing && !isRecord || isRecord && revision >= atLeast {
		return held
	}
	s.redis.cache = leaseOf(check)
	return s.redis.cache
}

// fill is fill.lua.
func (m *model) fill(s *state, check int, revision uint8) {
	if s.redis.cache == leaseOf(check) || m.LeaseIgnored {
		s.redis.cache = record(revision)
	}
}

// lose has Redis hold what a replica has, or nothing.
func (s *state) lose(to replica) {
	r := &s.redis
	r.cache, r.told = to.cache, 0
	for i := to.length; i < r.length; i++ {
		r.stream[i] = 0
	}
	r.length = to.length
	r.branch++
	if s.copied = to; s.left.Failovers == 0 {
		s.copied = replica{} // nobody needs it any more
	}
	s.replicated()
	for i := range s.gates {
		if o := &s.gates[i].overlay; o.there && o.revision > s.cleared {
			o.since = clock{stage: untold}
		}
	}
}

func (s *state) replicate() {
	s.copied = replica{s.redis.cache, s.redis.length}
	s.replicated()
}

// replicated notes that whatever Redis had been told before is replicated, or
// lost.
func (s *state) replicated() {
	for i := range s.gates {
		g := &s.gates[i]
		for _, c := range [...]*clock{&g.seen.since, &g.overlay.since} {
			if c.stage == aged {
				c.stage = ripe
			}
		}
	}
}
