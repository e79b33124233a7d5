package bloom

import (
	"math/rand/v2"
	"runtime"
	"strconv"

	"github.com/sendgate/sendgate"
)

// Snapshot is every opt-out as of a position in the change streams. It never
// changes, and is safe for concurrent use. One that was loaded is mapped memory,
// which is given back once nobody refers to the snapshot any more.
type Snapshot struct {
	header  Header
	optOuts *filter
	optIns  *filter
	covered map[sendgate.Setting]bool
	size    int64
}

func newSnapshot(h Header, optOuts, optIns []uint64, size int64) *Snapshot {
	s := &Snapshot{
		header: h, covered: make(map[sendgate.Setting]bool, len(h.Covered)), size: size,
		optOuts: newFilter(h.Salt, h.OptOuts.Hashes, h.OptOuts.Shards, optOuts),
		optIns:  newFilter(h.Salt, h.OptIns.Hashes, h.OptIns.Shards, optIns),
	}
	for _, c := range h.Covered {
		s.covered[sendgate.Setting(c)] = true
	}
	return s
}

// Header says what the snapshot is. The caller must not change what it refers
// to.
func (s *Snapshot) Header() *Header { return &s.header }

// Size is the snapshot's size in bytes, on disk and in memory.
func (s *Snapshot) Size() int64 { return s.size }

// Has tells whether a key is in the snapshot. It may say so of one that is not,
// at the rates that the header states.
func (s *Snapshot) Has(k Key) bool {
	defer runtime.KeepAlive(s)
	if k.Kind == OptIn {
		return s.optIns.has(k.Hash)
	}
	return s.optOuts.has(k.Hash)
}

// look answers all that a check may ask about a user and a setting. The user is
// hashed once. What is read from memory for the hold and for the setting is
// asked for before either is waited for.
func (s *Snapshot) look(user sendgate.UserID, setting sendgate.Setting) (a sendgate.FilterAnswer) {
	defer runtime.KeepAlive(s)
	u := userHash(user)
	key := keyHash(u, settingHash(setting))
	hold, optOut := s.optOuts.begin(keyHash(u, holdSetting)), s.optOuts.begin(key)
	a.OptInsCovered = s.covered[setting]
	a.Hold, a.OptedOut = hold.end(s.optOuts.pairs), optOut.end(s.optOuts.pairs)
	a.OptedIn = a.OptInsCovered && s.optIns.has(key)
	return a
}

// lookHard answers whether a hard hold may stand for a user.
func (s *Snapshot) lookHard(user sendgate.UserID) bool {
	defer runtime.KeepAlive(s)
	return s.optOuts.has(keyHash(userHash(user), hardHoldSetting))
}

// Measure probes the snapshot for that many users who do not exist, and
// returns the share of checks that would be rejected by mistake.
func (s *Snapshot) Measure(probes int, random *rand.Rand) float64 {
	hits := 0
	for range probes {
		user, setting := random.Uint64(), random.Uint64()
		if s.Has(Key{keyHash(user, holdSetting), Hold}) || s.Has(Key{keyHash(user, setting), OptOut}) {
			hits++
		}
	}
	return float64(hits) / float64(probes)
}

// canaries is how many of each kind are built in.
const canaries = 64

var canarySetting = sendgate.Setting{Topic: "canary", Channel: "canary"}

// canary is the id of nobody: no user's id has a control character.
func canary(i int) sendgate.UserID {
	return sendgate.UserID("\x00canary " + strconv.Itoa(i))
}

// canaryConsent has a key of every kind of a canary but its opt-in's, which
// canaryOptIn has: one setting cannot be both.
func canaryConsent(i int) sendgate.Consent {
	return sendgate.Consent{User: canary(i), Global: true, Hard: true, Settings: sendgate.Settings{canarySetting: false}}
}

func canaryOptIn(i int) sendgate.Consent {
	return sendgate.Consent{User: canary(i), Settings: sendgate.Settings{canarySetting: true}}
}

// canaryKeys yields the keys of all canaries.
func canaryKeys(n int, yield func(Key) bool) {
	all := func(sendgate.Setting) bool { return true }
	for i := range n {
		for _, c := range []sendgate.Consent{canaryConsent(i), canaryOptIn(i)} {
			for k := range KeysOf(c, all) {
				if !yield(k) {
					return
				}
			}
		}
	}
}

// checkCanaries asks for keys that were built in, in the way that gates ask:
// whatever is wrong with hashing, salt or layout makes them missing.
func (s *Snapshot) checkCanaries() error {
	for k := range func(yield func(Key) bool) { canaryKeys(s.header.Canaries, yield) } {
		if !s.Has(k) {
			return refuse("a canary of kind %s is missing: it was hashed, salted or laid out in another way", k.Kind)
		}
	}
	return nil
}
