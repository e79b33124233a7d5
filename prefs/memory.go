package prefs

import (
	"sync"

	"github.com/sendgate/sendgate"
)

// longestRemembered is the longest value of a record that is remembered, in bytes:
// it is sent along with every check of the user.
const longestRemembered = 2 << 10

// memory remembers records that were read lately, in two halves: what is used is in
// the younger one, and once that is full it becomes the older one, whose place was
// another's. So what was not used for long is forgotten, and nothing is searched for.
type memory struct {
	half int // bytes of values in one half

	mu             sync.Mutex
	younger, older map[sendgate.UserID]sendgate.Remembered
	size           int // of the younger half
}

// newMemory makes a memory of so many bytes of values.
func newMemory(bytes int) *memory {
	return &memory{half: bytes / 2, younger: map[sendgate.UserID]sendgate.Remembered{}}
}

// keep remembers a user's record.
func (m *memory) keep(user sendgate.UserID, r sendgate.Remembered) {
	size := len(user) + len(r.Value)
	if r.Value == "" || len(r.Value) > longestRemembered || size > m.half {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if known, ok := m.younger[user]; ok {
		m.size -= len(user) + len(known.Value)
	}
	if m.size+size > m.half {
		m.older, m.younger, m.size = m.younger, map[sendgate.UserID]sendgate.Remembered{}, 0
	}
	m.younger[user] = r
	m.size += size
}

// recall returns what is remembered of a user.
func (m *memory) recall(user sendgate.UserID) sendgate.Remembered {
	m.mu.Lock()
	r, young := m.younger[user]
	if !young {
		r = m.older[user]
	}
	m.mu.Unlock()
	if !young && r.Preferences != nil {
		m.keep(user, r)
	}
	return r
}

// forget forgets what a user's record was, unless it is another by now.
func (m *memory) forget(user sendgate.UserID, r sendgate.Remembered) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known, ok := m.younger[user]; ok && known.Value == r.Value {
		m.size -= len(user) + len(known.Value)
		delete(m.younger, user)
	}
	delete(m.older, user)
}

// Recall returns what was last read of a user's record, if it is of a revision or a
// later one.
func (r *Reader) Recall(user sendgate.UserID, atLeast int64) sendgate.Remembered {
	m := r.memory.recall(user)
	if m.Preferences == nil || m.Preferences.Revision < atLeast {
		return sendgate.Remembered{}
	}
	return m
}

// Tried is told whether a record was found to be as it was remembered.
func (r *Reader) Tried(user sendgate.UserID, m sendgate.Remembered, held bool) {
	if held {
		r.observe(CacheHeld)
		return
	}
	r.observe(CacheRefuted)
	r.memory.forget(user, m)
}
