package freqcap_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/sendgate/sendgate"
)

// asksOf lists n asks of a user, n0 and so on, under the same caps.
func asksOf(user sendgate.UserID, n int, caps ...sendgate.BoundCap) []sendgate.CapAsk {
	asks := make([]sendgate.CapAsk, n)
	for i := range asks {
		asks[i] = sendgate.CapAsk{User: user, NotificationID: fmt.Sprintf("n%d", i), Caps: caps}
	}
	return asks
}

func testSlotsAreGivenInTheOrderOfTheList(t *testing.T, client redis.UniversalClient) {
	b := onRedisClock(t, client)
	// Three users take turns; each has far more asks than one call carries.
	const each, limit = 250, 170
	var asks []sendgate.CapAsk
	for i := range each {
		for _, user := range []sendgate.UserID{"a", "b", "c"} {
			ask := asksOf(user, i+1, capOf(time.Hour, limit), capOf(time.Hour, 1000, "channel", "push"))[i]
			asks = append(asks, ask)
		}
	}
	for round, wantUsed := range []int{0, limit} { // asked again, the same answers
		for i, a := range b.Judge(context.Background(), asks, 0) {
			nth := i / 3
			used := max(min(nth+1, limit), wantUsed)
			if a.Err != nil || a.Admitted != (nth < limit) || a.Caps[0].Used != used || a.Caps[1].Used != used {
				t.Fatalf("round %d, ask %d of its user: %+v", round, nth, a)
			}
		}
	}
}

func testALookJudgesEachAskAlone(t *testing.T, client redis.UniversalClient) {
	b, two := onTestClock(t, client), capOf(time.Minute, 2)
	b.at("u", 0)
	b.charge("u", "first", two)
	for range 2 {
		for i, a := range b.Judge(context.Background(), looking(asksOf("u", 5, two)), 0) {
			if a.Err != nil || !a.Admitted || a.Caps[0].Used != 1 {
				t.Errorf("ask %d: %+v", i, a)
			}
		}
	}
}

func testOneListWithDifferentLimits(t *testing.T, client redis.UniversalClient) {
	b := onTestClock(t, client)
	b.at("u", 5)
	asks := []sendgate.CapAsk{
		{User: "u", NotificationID: "n0", Caps: []sendgate.BoundCap{capOf(time.Minute, 1)}},
		{User: "u", NotificationID: "n1", Caps: []sendgate.BoundCap{capOf(time.Minute, 1)}},
		{User: "u", NotificationID: "n2", Caps: []sendgate.BoundCap{capOf(time.Minute, 2)}},
		{User: "u", NotificationID: "n0", Caps: []sendgate.BoundCap{capOf(time.Minute, 0)}},
		// One counter named twice: both limits hold, one slot is taken.
		{User: "u", NotificationID: "n3", Caps: []sendgate.BoundCap{capOf(time.Minute, 3), capOf(time.Minute, 2)}},
		{User: "u", NotificationID: "n4", Caps: []sendgate.BoundCap{capOf(time.Minute, 3), capOf(time.Minute, 4)}},
		{User: "u", NotificationID: "n5"},
	}
	var got []string
	for _, a := range b.Judge(context.Background(), asks, 0) {
		line := fmt.Sprint(a.Admitted, a.Err)
		for _, s := range a.Caps {
			line += fmt.Sprintf(" %d/%d,%t", s.Used, s.Cap.Limit, s.Full)
		}
		got = append(got, line)
	}
	want := []string{
		"true <nil> 1/1,false", "false <nil> 1/1,true", "true <nil> 2/2,false", "true <nil> 2/0,false",
		"false <nil> 2/3,false 2/2,true", "true <nil> 3/3,false 3/4,false", "true <nil>",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestACapThatCannotBeCountedHarmsNoOther(t *testing.T) {
	t.Parallel()
	b := onRedisClock(t, embedded.open(t))
	short, other, lacking := capOf(time.Microsecond, 1), capOf(time.Minute, 1), capOf(time.Minute, 1, "channel", "push")
	other.Kind = 77
	lacking.Values = nil
	good := capOf(time.Minute, 1)
	asks := append(asksOf("u", 1, short), append(asksOf("u", 1, good, other), append(asksOf("u", 1, lacking), asksOf("u", 1, good)...)...)...)
	for i, a := range b.Judge(context.Background(), asks, 0) {
		if (a.Err == nil) != (i == 3) || a.Admitted != (i == 3) {
			t.Errorf("ask %d: %+v", i, a)
		}
	}
	if answers := b.Judge(context.Background(), nil, 0); len(answers) != 0 {
		t.Errorf("answers to nothing: %v", answers)
	}
}
