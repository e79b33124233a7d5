package freqcap_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/internal/redistest"
)

// damage makes a subject's record unreadable.
func (b *rig) damage(subject sendgate.Field, id string) {
	b.t.Helper()
	if err := b.client.Set(context.Background(), b.space.Caps(subject, id), "damaged", time.Hour).Err(); err != nil {
		b.t.Fatal(err)
	}
}

// TestOneSubjectCannotBeJudged has a household's record damaged: what the user's
// own caps say holds all the same, and what they are charged depends on whether
// the household's may be passed.
func TestOneSubjectCannotBeJudged(t *testing.T) {
	for _, policy := range []sendgate.UnverifiablePolicy{sendgate.UnverifiableSuppress, sendgate.UnverifiableAllow} {
		b := onRedisClock(t, redistest.Embedded(t))
		own, home := capOf(time.Hour, 2), ofHousehold("h", time.Hour, 9)
		home.OnUnverifiable = policy
		b.damage("household_id", "h")
		want := 0
		for i := range 4 {
			goes := policy == sendgate.UnverifiableAllow && i < 2
			if goes {
				want++
			}
			a := b.Judge(context.Background(), []sendgate.CapAsk{ask("u", fmt.Sprint("n", i), "push", home, own)}, 0)[0]
			full := policy == sendgate.UnverifiableAllow && !goes
			if a.Err == nil || a.Admitted || !a.Caps[0].Unjudged || a.Caps[1].Full != full || a.Caps[1].Used != want || a.At.IsZero() {
				t.Errorf("policy %d, ask %d: %+v", policy, i, a)
			}
			if n := b.judge("u", "x", false, own).Caps[0].Used; n != want {
				t.Errorf("policy %d, ask %d: %d are charged, want %d", policy, i, n, want)
			}
		}
	}
}

// TestTheUserCannotBeJudged has the user's own record damaged, in which only the
// link to the household is missed: the household's cap is counted.
func TestTheUserCannotBeJudged(t *testing.T) {
	b := onRedisClock(t, redistest.Embedded(t))
	home := ofHousehold("h", time.Hour, 1)
	b.damage("", "u")
	for i, want := range []bool{true, false} {
		a := b.Judge(context.Background(), []sendgate.CapAsk{ask("u", fmt.Sprint("n", i), "push", home)}, 0)[0]
		if a.Err != nil || a.Admitted != want || a.Caps[0].Used != 1 {
			t.Errorf("ask %d: %+v", i, a)
		}
	}
}

// TestTakingWhatCannotBeJudged counts what goes although nobody could tell: no
// more are charged than were to be taken.
func TestTakingWhatCannotBeJudged(t *testing.T) {
	for _, policy := range []sendgate.UnverifiablePolicy{sendgate.UnverifiableSuppress, sendgate.UnverifiableAllow} {
		b := onRedisClock(t, redistest.Embedded(t))
		own, home := capOf(time.Hour, 5), ofHousehold("h", time.Hour, 9)
		own.OnUnverifiable, home.OnUnverifiable = policy, policy
		b.damage("household_id", "h")
		asks := []sendgate.CapAsk{ask("u", "a", "push", home), ask("u", "b", "push", own), ask("u", "c", "push", own)}
		b.Judge(context.Background(), asks, 1)
		want := 1
		if policy == sendgate.UnverifiableAllow {
			want = 0 // the first one goes
		}
		if n := b.judge("u", "x", false, own).Caps[0].Used; n != want {
			t.Errorf("policy %d: %d are charged beside it, want %d", policy, n, want)
		}
	}
}

// trips counts the pipelines that a Redis is sent.
type trips struct{ n int }

func (*trips) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (*trips) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (c *trips) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.n++
		return next(ctx, cmds)
	}
}

// TestLooksOfSeveralSubjectsAreOneTrip has fifty candidates of a household looked
// at: nothing that one look finds depends on another.
func TestLooksOfSeveralSubjectsAreOneTrip(t *testing.T) {
	client := redistest.Embedded(t)
	b := onRedisClock(t, client)
	own, home := capOf(time.Hour, 9), ofHousehold("h", time.Hour, 9)
	b.judge("u", "x", false, own) // the script is known from now on
	var asks []sendgate.CapAsk
	for i := range 50 {
		asks = append(asks, ask("u", fmt.Sprint("n", i), "push", own, home))
	}
	count := &trips{}
	client.AddHook(count)
	for i, a := range b.Judge(context.Background(), looking(asks), 0) {
		if a.Err != nil || !a.Admitted {
			t.Errorf("candidate %d: %+v", i, a)
		}
	}
	if count.n != 1 {
		t.Errorf("%d round trips", count.n)
	}
}
