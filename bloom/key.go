package bloom

import (
	"iter"
	"math/bits"

	"github.com/cespare/xxhash/v2"

	"github.com/sendgate/sendgate"
)

// hashing names how keys are made and placed. A snapshot made in another way
// is refused; the name changes with anything here, or in how a filter places
// keys, that does.
const hashing = "xxh64-mix-2"

// Kind says what a Key stands for.
type Kind uint8

// The kinds of keys.
const (
	Hold     Kind = iota // a hold stands for the user
	HardHold             // a hard hold stands for the user
	OptOut               // the user's own setting is off
	OptIn                // the user's own setting is on, where the default is off
	kindCount
)

// String is the kind's name, for people and metrics.
func (k Kind) String() string {
	return [kindCount]string{"hold", "hard_hold", "opt_out", "opt_in"}[k]
}

// Key is what is known of one user in one respect, hashed to 64 bits. Keys of
// opt-ins are kept apart from all others. The upper shardBits of the hash are
// the user's alone, so that all keys of a user stand in the same shard of a
// filter; two keys are the same by accident about once in 2^64 pairs, which a
// rebuild does not change.
type Key struct {
	Hash uint64
	Kind Kind
}

// shardBits is how many upper bits of a key tell its shard at the most.
const shardBits = 16

// The settings of keys that are about no setting. No hash of one is likelier
// than another to meet these.
const (
	holdSetting     = 0x9ae16a3b2f90404f
	hardHoldSetting = 0xc3a5c85c97cb3127
)

func userHash(user sendgate.UserID) uint64 { return xxhash.Sum64String(string(user)) }

// settingHash tells topic and channel apart, wherever one ends.
func settingHash(s sendgate.Setting) uint64 {
	return mix(xxhash.Sum64String(s.Topic) ^ bits.RotateLeft64(xxhash.Sum64String(s.Channel), 32))
}

// keyHash is a user's key in one respect.
func keyHash(user, setting uint64) uint64 {
	return user&^(1<<(64-shardBits)-1) | mix(user^setting)>>shardBits
}

// mix is the finalizer of SplitMix64 (Steele, Lea, Flood, "Fast splittable
// pseudorandom number generators", 2014): a bijection in which every bit of
// the input moves every bit of the output.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// step is the increment of SplitMix64's state: 2^64 over the golden ratio.
const step = 0x9e3779b97f4a7c15

// KeysOf are the keys of one user's consent. Opt-ins count where the snapshot
// covers their setting.
func KeysOf(c sendgate.Consent, covered func(sendgate.Setting) bool) iter.Seq[Key] {
	return func(yield func(Key) bool) {
		user := userHash(c.User)
		if c.Global && !yield(Key{keyHash(user, holdSetting), Hold}) {
			return
		}
		if c.Hard && !yield(Key{keyHash(user, hardHoldSetting), HardHold}) {
			return
		}
		for s, on := range c.Settings {
			key := Key{keyHash(user, settingHash(s)), OptOut}
			if on {
				if key.Kind = OptIn; !covered(s) {
					continue
				}
			}
			if !yield(key) {
				return
			}
		}
	}
}
