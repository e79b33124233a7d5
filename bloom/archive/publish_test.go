package archive

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"testing"
)

func TestTaken(t *testing.T) {
	onEveryPlace(t, func(t *testing.T, p testPlace) {
		a := p.open(t, "shop")
		mustPublish(t, a, 5, "first")
		err := p.open(t, "shop").Publish(t.Context(), 5, func(io.Writer) error {
			t.Error("a snapshot was written for nothing")
			return nil
		})
		if !errors.Is(err, ErrTaken) {
			t.Errorf("%v, not ErrTaken", err)
		}
		if got := mustFetch(t, a, 5); got != "first" {
			t.Errorf("it is %q now", got)
		}
		mustPublish(t, p.open(t, "else"), 5, "of another namespace")
	})
}

// TestOneOfManyPublishers lets all write before any may finish, so that none
// can see beforehand that the generation is taken.
func TestOneOfManyPublishers(t *testing.T) {
	onEveryPlace(t, func(t *testing.T, p testPlace) { oneWins(t, p, 8, 100_000) })
}

// oneWins lets many publish one generation at the same time.
func oneWins(t *testing.T, p testPlace, many, size int) {
	t.Helper()
	var written, ended sync.WaitGroup
	written.Add(many)
	errs, contents := make([]error, many), make([][]byte, many)
	for i := range many {
		a := p.open(t, "shop")
		contents[i] = bytes.Repeat([]byte{byte('a' + i)}, size)
		ended.Go(func() {
			errs[i] = a.Publish(t.Context(), 9, func(w io.Writer) error {
				_, err := w.Write(contents[i])
				written.Done()
				written.Wait()
				return err
			})
		})
	}
	ended.Wait()
	winner := slices.Index(errs, nil)
	taken := 0
	for _, err := range errs {
		if errors.Is(err, ErrTaken) {
			taken++
		}
	}
	if winner < 0 || taken != many-1 {
		t.Fatalf("%d were told that it is taken: %v", taken, errs)
	}
	a := p.open(t, "shop")
	if got := mustFetch(t, a, 9); got != string(contents[winner]) {
		t.Error("it is not the winner's")
	}
	if got := p.keys(t); len(got) != 1 {
		t.Errorf("the place has %q", got)
	}
}

func TestFailingWritePublishesNothing(t *testing.T) {
	broken := errors.New("broken")
	onEveryPlace(t, func(t *testing.T, p testPlace) {
		a := p.open(t, "shop")
		for _, c := range []struct {
			size    int
			failure error
		}{{0, broken}, {0, io.EOF}, {100, io.EOF}, {2 << 20, broken}, {2 << 20, io.EOF}} {
			err := a.Publish(t.Context(), 5, func(w io.Writer) error {
				if _, err := w.Write(make([]byte, c.size)); err != nil {
					return err
				}
				return c.failure
			})
			if !errors.Is(err, c.failure) {
				t.Errorf("%v, not the writer's own %v", err, c.failure)
			}
			if got := p.keys(t); len(got) != 0 {
				t.Fatalf("%v after %d bytes: the place has %q", c.failure, c.size, got)
			}
		}
		mustPublish(t, a, 5, "then it is free")
	})
}

// TestEndedContext ends the context while the snapshot is written, by a writer
// that minds its errors, by one that does not, and by one that is done.
func TestEndedContext(t *testing.T) {
	for _, writer := range []string{"careful", "careless", "done"} {
		t.Run(writer, func(t *testing.T) {
			onEveryPlace(t, func(t *testing.T, p testPlace) {
				a := p.open(t, "shop")
				ctx, cancel := context.WithCancel(t.Context())
				err := a.Publish(ctx, 5, func(w io.Writer) error {
					_, err := w.Write(make([]byte, 1<<20))
					cancel()
					if err != nil || writer == "done" {
						return err
					}
					if _, err = w.Write(make([]byte, 1<<20)); writer == "careless" {
						return nil
					}
					return err
				})
				if !errors.Is(err, context.Canceled) {
					t.Errorf("published with %v", err)
				}
				if got := p.keys(t); len(got) != 0 {
					t.Errorf("the place has %q", got)
				}
				mustPublish(t, a, 5, "five")
				mustPublish(t, a, 6, "six")
				for call, err := range map[string]error{
					"publish": a.Publish(ctx, 7, func(io.Writer) error { t.Error("written"); return nil }),
					"fetch":   a.Fetch(ctx, 5, io.Discard),
					"prune":   a.Prune(ctx, 1),
					"list":    second(a.Generations(ctx)),
				} {
					if !errors.Is(err, context.Canceled) {
						t.Errorf("%s: %v", call, err)
					}
				}
				if got := generations(t, a); !slices.Equal(got, []int64{6, 5}) {
					t.Errorf("the generations are %v", got)
				}
			})
		})
	}
}
