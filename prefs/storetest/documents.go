package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sendgate/sendgate/limits"
	"github.com/sendgate/sendgate/prefs"
)

var documentTests = []test{
	{"one that nobody wrote has revision 0", func(ctx context.Context, t *testing.T, s prefs.Store) {
		reads(ctx, t, s, "limits/index", 0, nil)
	}},
	{"what was written is read, at the next revision", documentsRead},
	{"a wrong revision conflicts and changes nothing", documentsConflict},
	{"of many writers at the same time one wins", documentsOneWinner},
	{"many writers who try again lose nothing", documentsLoseNothing},
	{"they are no user and no layout", documentsAreApart},
}

func reads(ctx context.Context, t *testing.T, s prefs.Store, name string, revision int64, body []byte) {
	t.Helper()
	d, err := s.ReadDocument(ctx, name)
	if err != nil || d.Revision != revision || !bytes.Equal(d.Body, body) {
		t.Errorf("ReadDocument(%q): revision %d, %d bytes, %v; want revision %d, %d bytes", name, d.Revision, len(d.Body), err, revision, len(body))
	}
}

func writes(ctx context.Context, t *testing.T, s prefs.Store, name string, body []byte, ifRevision int64) {
	t.Helper()
	if err := s.WriteDocument(ctx, name, body, ifRevision); err != nil {
		t.Fatalf("WriteDocument(%q, %d bytes, if %d): %v", name, len(body), ifRevision, err)
	}
}

func documentsRead(ctx context.Context, t *testing.T, s prefs.Store) {
	bodies := [][]byte{
		[]byte("{}"), {0, 255, 0, '\n'}, {}, bytes.Repeat([]byte{0xfe, 1}, limits.MaxDocumentBytes/2), []byte("after the longest"),
	}
	for i, body := range bodies {
		given := bytes.Clone(body)
		writes(ctx, t, s, "a/00", given, int64(i))
		clear(given) // the caller's again
		reads(ctx, t, s, "a/00", int64(i)+1, body)
		d, err := s.ReadDocument(ctx, "a/00")
		if err != nil {
			t.Fatal(err)
		}
		clear(d.Body)
		reads(ctx, t, s, "a/00", int64(i)+1, body)
	}
	// Others by nearly the same name.
	for _, name := range []string{"a/0", "a/000", "A/00", "a-00", strings.Repeat("n", 64)} {
		reads(ctx, t, s, name, 0, nil)
		writes(ctx, t, s, name, []byte(name), 0)
		reads(ctx, t, s, name, 1, []byte(name))
	}
	reads(ctx, t, s, "a/00", int64(len(bodies)), bodies[len(bodies)-1])
}

func documentsConflict(ctx context.Context, t *testing.T, s prefs.Store) {
	conflicts := func(ifRevision int64) {
		t.Helper()
		if err := s.WriteDocument(ctx, "d", []byte("late"), ifRevision); !errors.Is(err, limits.ErrConflict) {
			t.Errorf("a write if the revision is %d: %v, want ErrConflict", ifRevision, err)
		}
	}
	conflicts(1)
	conflicts(1 << 40)
	reads(ctx, t, s, "d", 0, nil)
	writes(ctx, t, s, "d", []byte("one"), 0)
	writes(ctx, t, s, "d", []byte("two"), 1)
	for _, wrong := range []int64{0, 1, 3, 1 << 40} {
		conflicts(wrong)
	}
	reads(ctx, t, s, "d", 2, []byte("two"))
}

func documentsOneWinner(ctx context.Context, t *testing.T, s prefs.Store) {
	const writers = 16
	for revision := range int64(3) {
		var all sync.WaitGroup
		outcomes := make([]error, writers)
		for i := range writers {
			all.Go(func() { outcomes[i] = s.WriteDocument(ctx, "d", []byte(fmt.Sprint("writer ", i)), revision) })
		}
		all.Wait()
		winner := slices.Index(outcomes, nil)
		for i, err := range outcomes {
			if i != winner && !errors.Is(err, limits.ErrConflict) {
				t.Errorf("beside the winner %d of revision %d, writer %d has the outcome %v, want ErrConflict", winner, revision+1, i, err)
			}
		}
		reads(ctx, t, s, "d", revision+1, []byte(fmt.Sprint("writer ", winner)))
	}
}

func documentsLoseNothing(ctx context.Context, t *testing.T, s prefs.Store) {
	const writers = 24
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			for {
				d, err := s.ReadDocument(ctx, "d")
				if err == nil {
					err = s.WriteDocument(ctx, "d", append(d.Body, byte(i)), d.Revision)
				}
				if err == nil {
					return
				}
				if !errors.Is(err, limits.ErrConflict) {
					t.Errorf("writer %d: %v", i, err)
					return
				}
			}
		})
	}
	all.Wait()
	d, err := s.ReadDocument(ctx, "d")
	slices.Sort(d.Body)
	if err != nil || d.Revision != writers || len(slices.Compact(d.Body)) != writers {
		t.Errorf("after %d writes: revision %d, %v, %v", writers, d.Revision, d.Body, err)
	}
}

func documentsAreApart(ctx context.Context, t *testing.T, s prefs.Store) {
	for _, name := range []string{"layout", "format", "u"} {
		writes(ctx, t, s, name, []byte("{}"), 0)
	}
	if got, err := s.Layout(ctx, prefs.Layout{Partitions: 8}); err != nil || got.Partitions != 8 {
		t.Errorf("Layout(8) = %v, %v", got, err)
	}
	stored(ctx, t, s, &prefs.Record{User: "u"})
	if seen := scanAll(ctx, t, s, 2); len(seen) != 0 {
		t.Errorf("a scan of a store that has only documents: %v", seen)
	}
	reads(ctx, t, s, "layout", 1, []byte("{}"))
}
