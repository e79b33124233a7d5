package rebuild_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/bloom"
	"github.com/sendgate/sendgate/prefs"
	"github.com/sendgate/sendgate/rebuild"
)

// TestOneSegmentFails has one of many segments fail while all others stand in
// the middle of theirs, and would for ever. What failed is named, and not that
// the others were stopped.
func TestOneSegmentFails(t *testing.T) {
	const segments, failing = 16, 11
	for range 30 { // the error must not depend on who ends first
		p := newPlace(t)
		o, _, _ := options(p)
		o.Segments = segments
		var reached sync.WaitGroup
		reached.Add(segments)
		o.Store = scanner(func(ctx context.Context, segment, _ int, each func(*prefs.Record) error) error {
			if err := each(optedOut(fmt.Sprint("u", segment))); err != nil {
				return err
			}
			reached.Done()
			reached.Wait()
			if segment == failing {
				return errBroken
			}
			<-ctx.Done()
			return fmt.Errorf("scan: %w", ctx.Err())
		})
		built, err := rebuild.New(o).Once(t.Context())
		if built != nil || !errors.Is(err, errBroken) || !strings.Contains(err.Error(), "read segment 11 of 16 of the store: broken") {
			t.Fatalf("%v, %v", built, err)
		}
		if got := p.generations(t); len(got) != 0 {
			t.Fatalf("%v is published", got)
		}
	}
}

// TestTooManyKeys has one segment bring more than may be kept, while another
// waits. The refusal is the error, and the other is stopped.
func TestTooManyKeys(t *testing.T) {
	p := newPlace(t)
	o, _, _ := options(p)
	o.Segments, o.Memory = 2, 1<<10
	many := &prefs.Record{User: "u", Preferences: sendgate.Preferences{Settings: sendgate.Settings{}}}
	for i := range 1000 {
		many.Settings[sendgate.Setting{Topic: fmt.Sprint("t", i), Channel: "push"}] = false
	}
	o.Store = scanner(func(ctx context.Context, segment, _ int, each func(*prefs.Record) error) error {
		if segment == 0 {
			<-ctx.Done()
			return ctx.Err()
		}
		for {
			if err := each(many); err != nil {
				return fmt.Errorf("scan: %w", err)
			}
		}
	})
	if built, err := rebuild.New(o).Once(t.Context()); built != nil || !errors.Is(err, bloom.ErrBound) {
		t.Errorf("%v, %v", built, err)
	}
	if got := p.generations(t); len(got) != 0 {
		t.Errorf("%v is published", got)
	}
}

// TestTheContextEndsARebuild ends it in a scan, also of a store that takes the
// end of the context for the end of a segment.
func TestTheContextEndsARebuild(t *testing.T) {
	for _, honest := range []bool{true, false} {
		p := newPlace(t)
		o, _, _ := options(p)
		ctx, cancel := context.WithCancel(t.Context())
		o.Store = scanner(func(ctx context.Context, segment, _ int, each func(*prefs.Record) error) error {
			if segment == 0 {
				cancel()
			}
			<-ctx.Done()
			if honest {
				return ctx.Err()
			}
			return each(optedOut("a"))
		})
		if built, err := rebuild.New(o).Once(ctx); built != nil || !errors.Is(err, context.Canceled) {
			t.Errorf("honest %t: %v, %v", honest, built, err)
		}
		if got := p.generations(t); len(got) != 0 {
			t.Errorf("honest %t: %v is published", honest, got)
		}
	}
}
