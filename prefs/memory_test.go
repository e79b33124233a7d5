package prefs

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/sendgate/sendgate"
)

// TestTheMemoryIsBounded keeps far more than there is room for, in every order:
// what is held never exceeds its bound and what is recalled is what was kept last.
func TestTheMemoryIsBounded(t *testing.T) {
	const bytes = 20_000
	m := newMemory(bytes)
	kept := map[sendgate.UserID]sendgate.Remembered{}
	found := 0
	for i := range 20_000 {
		user := sendgate.UserID(fmt.Sprint("u", rand.N(300)))
		switch rand.N(4) {
		case 0:
			r := sendgate.Remembered{Preferences: &sendgate.Preferences{Revision: int64(i)}, Value: strings.Repeat("v", 1+rand.N(longestRemembered))}
			m.keep(user, r)
			kept[user] = r
		case 1:
			m.forget(user, m.recall(user))
			if r := m.recall(user); r.Preferences != nil {
				t.Fatalf("%s was forgotten, and is revision %d", user, r.Preferences.Revision)
			}
		default:
			if r := m.recall(user); r.Preferences != nil {
				found++
				if r != kept[user] {
					t.Fatalf("%s: revision %d, not %d", user, r.Preferences.Revision, kept[user].Preferences.Revision)
				}
			}
		}
		size := 0
		for _, half := range []map[sendgate.UserID]sendgate.Remembered{m.younger, m.older} {
			for u, r := range half {
				size += len(u) + len(r.Value)
			}
		}
		if size > bytes {
			t.Fatalf("%d bytes are kept", size)
		}
	}
	if found == 0 {
		t.Error("nothing was recalled")
	}
}

// TestWhatIsUsedIsRemembered has one user asked about all the while among many.
func TestWhatIsUsedIsRemembered(t *testing.T) {
	m := newMemory(2000)
	r := sendgate.Remembered{Preferences: &sendgate.Preferences{}, Value: "v"}
	m.keep("hot", r)
	for i := range 10_000 {
		m.keep(sendgate.UserID(fmt.Sprint("u", i)), r)
		if i%50 == 0 && m.recall("hot").Preferences == nil {
			t.Fatalf("forgotten after %d", i)
		}
	}
	if m.recall("u0").Preferences != nil {
		t.Error("what was not asked about for long is remembered")
	}
}

func TestWhatIsNotRemembered(t *testing.T) {
	for name, c := range map[string]struct {
		bytes int
		value string
	}{
		"without room":   {0, "v"},
		"without value":  {1000, ""},
		"too long":       {1 << 20, strings.Repeat("v", longestRemembered+1)},
		"than the whole": {1000, strings.Repeat("v", 600)},
	} {
		m := newMemory(c.bytes)
		m.keep("u", sendgate.Remembered{Preferences: &sendgate.Preferences{}, Value: c.value})
		if m.recall("u").Preferences != nil {
			t.Errorf("remembered %s", name)
		}
	}
}
