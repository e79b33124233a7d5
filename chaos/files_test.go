package chaos_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// builderKilled kills a builder that has begun to read the store. Then another
// one builds.
func builderKilled(r *rig) {
	store := startProxy(r.t, r.dynamo.Addr())
	scanning := store.holdAt(true, sent(".Scan"))
	builder := r.build(r.engine.addr(), store.addr())
	select {
	case <-scanning:
	case <-builder.Ended():
		r.t.Fatalf("the builder ended before it read the store, and said: %s", builder.Said())
	case <-time.After(patience):
		r.t.Fatal("the builder does not read the store")
	}
	r.lasts(500 * time.Millisecond)
	builder.Kill()
	r.buildWell()
}

// builderKilledPublishing kills a builder that has written a part of a snapshot,
// and one that has published one and is about to tell the gates. Then another
// one builds.
func builderKilledPublishing(r *rig) {
	published := r.generations()
	builder := r.buildWith(r.edited, append(through(r.engine.addr(), r.dynamo.Addr()), heldUpVariable+"=publishing")...)
	until(r.t, "a part of a snapshot is written", func() bool {
		parts, err := filepath.Glob(filepath.Join(r.archive, ".*.part"))
		return err == nil && len(parts) > 0
	})
	builder.Kill()
	if now := r.generations(); !slices.Equal(now, published) {
		r.t.Fatalf("a builder was held up that has published: %q, and then %q", published, now)
	}

	link := startProxy(r.t, r.engine.addr())
	telling := link.holdAt(false, sent("\r\npublish\r\n"))
	builder = r.build(link.addr(), r.dynamo.Addr())
	select {
	case <-telling:
	case <-builder.Ended():
		r.t.Fatalf("the builder ended before it told the gates, and said: %s", builder.Said())
	case <-time.After(patience):
		r.t.Fatal("the builder does not tell the gates")
	}
	builder.Kill()
	link.reset()
	if now := r.generations(); slices.Equal(now, published) {
		r.t.Fatal("a builder tells of a snapshot before it is published")
	}
	r.buildWell()
}

// generations lists the files of what is published, the oldest first.
func (r *rig) generations() []string {
	r.t.Helper()
	published, err := filepath.Glob(filepath.Join(r.archive, "[^.]*.filter"))
	if err != nil || len(published) == 0 {
		r.t.Fatalf("nothing is published in %s: %v", r.archive, err)
	}
	slices.Sort(published)
	return published
}

// snapshotsCorrupted spoils what is published while it is in use, and publishes
// garbage. A gate that is started then finds nothing that it can use, and
// another one keeps what it has; until a good one is built.
func snapshotsCorrupted(r *rig) {
	published := r.generations()
	for i, name := range published {
		data, err := os.ReadFile(name)
		if err != nil {
			r.t.Fatal(err)
		}
		if i%2 == 0 {
			data[len(data)/2] ^= 0x10
		} else {
			data = data[:len(data)*2/3]
		}
		r.overwrite(name, data)
	}
	newest := published[len(published)-1]
	stem, digits, _ := cutLast(strings.TrimSuffix(newest, ".filter"), "-")
	generation, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		r.t.Fatalf("what generation is %s? %v", newest, err)
	}
	r.overwrite(fmt.Sprintf("%s-%0*d.filter", stem, len(digits), generation+1), bytes.Repeat([]byte("garbage\n"), 5000))
	r.victim().kill()
	r.victim().start()
	r.lasts(1500 * time.Millisecond)
	r.buildWell()
}

func (r *rig) overwrite(name string, data []byte) {
	r.t.Helper()
	if err := os.WriteFile(name, data, 0o600); err != nil {
		r.t.Fatal(err)
	}
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}
