package feed_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/bloom"
	"github.com/sendgate/sendgate/internal/redistest"
)

// gate is what a gate is to a follower: an overlay. It remembers what it was
// told.
type gate struct {
	*bloom.Overlay
	mu      sync.Mutex
	applied []change
	events  []string // live, away, gap and filters, in their order
	log     []string
	lags    int
}

// change is a user's consent and where it stands.
type change struct {
	sendgate.Consent
	at sendgate.Place
}

func (g *gate) Apply(c sendgate.Consent, at sendgate.Place) {
	g.mu.Lock()
	g.applied = append(g.applied, change{c, at})
	g.mu.Unlock()
	g.Overlay.Apply(c, at)
}

// Write takes a line of the follower's log.
func (g *gate) Write(line []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.log = append(g.log, string(line))
	return len(line), nil
}

func (g *gate) logged(what string) (times int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return strings.Count(strings.Join(g.log, ""), what)
}

func (g *gate) event(e string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.events = append(g.events, e)
}

func (g *gate) SetLive(live bool) {
	g.event(map[bool]string{true: "live", false: "away"}[live])
	g.Overlay.SetLive(live)
}

func (g *gate) Gap() {
	g.event("gap")
	g.Overlay.Gap()
}

func (g *gate) happened(event string) (times int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, e := range g.events {
		if e == event {
			times++
		}
	}
	return times
}

// of lists the revisions that were heard of a user.
func (g *gate) of(user string) (revisions []int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.applied {
		if c.User == sendgate.UserID(user) {
			revisions = append(revisions, c.Revision)
		}
	}
	return revisions
}

func (g *gate) knows(user string, revision int64) bool {
	c, exact, ok := g.Consent(sendgate.UserID(user))
	return ok && exact && c.Revision == revision && c.Global == consentOf(user, revision).Global
}

// knowsPlaces says that whatever was heard stands where it was said to.
func (g *gate) knowsPlaces(d *desk) {
	d.t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.applied {
		d.standsThere(c)
	}
}

func (g *gate) learns(t *testing.T, user string, revision int64) {
	t.Helper()
	redistest.Until(t, fmt.Sprintf("%s is known at %d", user, revision), func() bool { return g.knows(user, revision) })
}
