package freqcap_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/freqcap"
	"github.com/sendgate/sendgate/quiet"
)

// heldFor makes an ask that is dropped unless delivery is reported.
func heldFor(hold time.Duration, a sendgate.CapAsk) sendgate.CapAsk {
	a.Hold = hold
	return a
}

// both sets the test clocks of the user u and the household h.
func (b *rig) both(millis int64) {
	b.t.Helper()
	b.at("u", millis)
	b.atHome("h", millis)
}

// takenAtHome is how many slots of a household's cap are taken.
func (b *rig) takenAtHome(c sendgate.BoundCap) int {
	b.t.Helper()
	return b.judge("x", "nobody asks for this", false, c).Caps[0].Used
}

// A hold lapses in full, although the id is forgotten before anybody looks.
func testAHoldOutlivesTheMemoryOfItsID(t *testing.T, client redis.UniversalClient) {
	began := parse(t, "2026-06-02T00:00:00Z")
	for name, c := range map[string]sendgate.BoundCap{"buckets": bucketsOf(7*24*time.Hour, 28, 1), "month": calendarOf(quiet.Month, "UTC", 1)} {
		b := onTestClock(t, client)
		at := func(after time.Duration) {
			b.SetNow(func() time.Time { return began.Add(after) })
			b.at("u", began.Add(after).UnixMilli())
		}
		at(0)
		if !b.goes(heldFor(2*time.Minute, ask("u", "n1", "push", c))) {
			t.Fatalf("%s: no room", name)
		}
		at(49 * time.Hour)
		if n := b.taken(c); n != 0 || !b.goes(ask("u", "n2", "push", c)) {
			t.Errorf("%s: %d slots are taken long after the hold", name, n)
		}
	}
	// It has been held anew meanwhile, in another bucket than it is charged in.
	b, c := onTestClock(t, client), bucketsOf(4*time.Minute, 4, 1)
	c.Remember = time.Minute
	held := heldFor(50*time.Second, ask("u", "n1", "push", c))
	for _, after := range []int64{30_000, 70_000} {
		b.at("u", 1_200_000+after)
		b.goes(held)
	}
	b.at("u", 1_200_000+119_999)
	if n := b.taken(c); n != 1 {
		t.Errorf("%d slots are taken while it is held", n)
	}
	b.at("u", 1_200_000+120_000)
	if n := b.taken(c); n != 0 {
		t.Errorf("%d slots are taken after the hold", n)
	}
}

// Whoever got no answer asks again, within what was held for a moment: nothing is
// charged twice, and nothing lapses.
func testAskedAgainWithinAShortHold(t *testing.T, client redis.UniversalClient) {
	for name, hold := range map[string]time.Duration{"for good": 0, "until it is delivered": time.Minute} {
		b := onTestClock(t, client)
		dying := freqcap.NewOnTestClock(client, b.space, newGuard())
		dying.DieBeforeTheEnd()
		own, home := capOf(time.Hour, 1), ofHousehold("h", time.Hour, 1)
		first := heldFor(hold, ask("u", "n1", "push", own, home))
		b.both(1_000_000)
		if a := dying.Judge(context.Background(), []sendgate.CapAsk{first}, 0)[0]; a.Err == nil {
			t.Fatalf("%s: it was not killed: %+v", name, a)
		}
		b.both(1_001_000)
		first.Caps = []sendgate.BoundCap{capOf(time.Hour, 0), ofHousehold("h", time.Hour, 0)} // lowered since
		a := b.Judge(context.Background(), []sendgate.CapAsk{first}, 0)[0]
		if !a.Admitted || a.Caps[0].Used != 1 || !a.Caps[1].LapsesAt.Equal(instant(4_600_000)) {
			t.Errorf("%s: asked again: %+v", name, a)
		}
		b.both(1_002_001)
		if b.goes(ask("u", "n2", "push", own, home)) {
			t.Errorf("%s: another goes where one may", name)
		}
		b.wants("used", "1 1", fmt.Sprint(b.taken(own), b.takenAtHome(home)))
	}
}

// Asked again, what is held until it is delivered is held for as long again, under
// the caps of every subject; and for good by a category that counts at once.
func testAskedAgainWithinAHold(t *testing.T, client redis.UniversalClient) {
	for name, others := range map[string][]sendgate.BoundCap{"one subject": nil, "two subjects": {ofHousehold("h", time.Hour, 5)}} {
		b, own := onTestClock(t, client), capOf(time.Hour, 5)
		held := heldFor(time.Minute, ask("u", "n", "push", append(others, own)...))
		used := func(at int64, want int) {
			t.Helper()
			b.both(at)
			for _, c := range held.Caps {
				if n := b.judge("u", "x", false, c).Caps[0].Used; n != want {
					t.Errorf("%s, at %d: %d slots by %s are taken, want %d", name, at, n, c.Subject, want)
				}
			}
		}
		b.both(1_000_000)
		b.goes(held)
		b.both(1_059_999)
		b.goes(held)
		used(1_119_998, 1)
		b.goes(heldFor(time.Second, held)) // cuts nothing short
		used(1_119_998, 1)
		used(1_121_000, 0)
		b.goes(held)
		b.goes(heldFor(0, held))
		used(1_300_000, 1)
	}
}

// What one category holds under its caps is not touched by what another one asks
// under its own, for the same notification.
func testCategoriesHoldApart(t *testing.T, client redis.UniversalClient) {
	x, y := capOf(time.Hour, 1, "category", "x"), capOf(time.Hour, 1, "category", "y")
	b := onTestClock(t, client)
	b.at("u", 1_000_000)
	b.goes(heldFor(time.Minute, ask("u", "n", "push", x)))
	b.goes(ask("u", "n", "push", y)) // at the very same time
	b.at("u", 1_001_000)
	b.goes(ask("u", "m", "push", y))
	b.at("u", 1_060_000)
	b.wants("used", "0 1", fmt.Sprint(b.taken(x), b.taken(y)))

	b.goes(ask("u", "n", "push", x))
	b.goes(heldFor(time.Minute, ask("u", "n", "push", y))) // counts already
	b.at("u", 1_500_000)
	b.wants("used", "1 1", fmt.Sprint(b.taken(x), b.taken(y)))
	b.wants("failed", "given_back", b.tells("n", "push", sendgate.Failed, 0))
	b.wants("used", "0 0", fmt.Sprint(b.taken(x), b.taken(y)))
}

// A report of an attempt before ends what that one held, and no later hold.
func testAReportOfAnAttemptBefore(t *testing.T, client redis.UniversalClient) {
	b, x, y := onTestClock(t, client), bucketsOf(time.Hour, 6, 5), capOf(time.Hour, 5)
	b.at("u", 36_000_000)
	b.goes(heldFor(2*time.Minute, ask("u", "n", "push", x)))
	b.goes(ask("u", "m", "push", x))
	b.at("u", 36_060_000)
	b.goes(heldFor(2*time.Minute, ask("u", "n", "push", y)))
	b.wants("the first one failed", "given_back", b.tells("n", "push", sendgate.Failed, 36_030_000))
	b.wants("used", "1 1", fmt.Sprint(b.taken(x), b.taken(y)))
	b.at("u", 36_130_000) // when the first hold would have lapsed
	b.wants("used", "1 1", fmt.Sprint(b.taken(x), b.taken(y)))
	b.at("u", 36_180_000)
	b.wants("used", "1 0", fmt.Sprint(b.taken(x), b.taken(y)))
}

// What is dropped because another subject had no room takes no slot along that an
// ask before has, of the same id in the same millisecond; and the answer says what
// is taken once it is dropped.
func testADropTakesItsOwn(t *testing.T, client redis.UniversalClient) {
	b := onTestClock(t, client)
	own, more, never := capOf(time.Hour, 5), capOf(2*time.Hour, 5), ofHousehold("never", time.Hour, 0)
	b.both(1_000_000)
	b.atHome("never", 1_000_000)
	got := b.Judge(context.Background(), []sendgate.CapAsk{ask("u", "n", "push", own), ask("u", "n", "push", own, more, never)}, 0)
	for i, want := range []string{"true 1", "false 1 0 0"} {
		used := fmt.Sprint(got[i].Admitted)
		for _, s := range got[i].Caps {
			used += fmt.Sprint(" ", s.Used)
		}
		b.wants("answer", want, used)
	}
	b.wants("used", "1 0", fmt.Sprint(b.taken(own), b.taken(more)))

	// A slot that another channel has is not one that comes free.
	a := b.Judge(context.Background(), []sendgate.CapAsk{ask("u", "n", "email", own, never)}, 0)[0]
	b.wants("answer by e-mail", "false 1", fmt.Sprint(a.Admitted, " ", a.Caps[0].Used))
	b.wants("push fails", "given_back", b.tells("n", "push", sendgate.Failed, 0))
	dying := freqcap.NewOnTestClock(client, b.space, newGuard())
	dying.DieBeforeTheEnd()
	b.goes(ask("u", "m", "email", own))
	dying.Judge(context.Background(), []sendgate.CapAsk{ask("u", "m", "push", own, ofHousehold("h", time.Hour, 5))}, 0)
	a = b.Judge(context.Background(), []sendgate.CapAsk{ask("u", "m", "push", own, never)}, 0)[0]
	b.wants("answer by push", "false 1", fmt.Sprint(a.Admitted, " ", a.Caps[0].Used))
	b.wants("used", "1", fmt.Sprint(b.taken(own)))
}

// interrupted is a connection that has something done before it sends a word for
// the first time.
type interrupted struct {
	net.Conn
	word string
	once *sync.Once
	do   func()
}

func (c interrupted) Write(p []byte) (int, error) {
	if strings.Contains(string(p), "\r\n"+c.word+"\r\n") {
		c.once.Do(c.do)
	}
	return c.Conn.Write(p)
}

// Two gates ask for one id. One finds the household full, and before it drops what
// it holds of the user's, the other finds room there: it keeps what the first one
// took.
func testTwoGatesAskForOneID(t *testing.T, client redis.UniversalClient) {
	b := onTestClock(t, client)
	own, home := capOf(time.Hour, 1), ofHousehold("h", time.Hour, 1)
	asked := ask("u", "n", "push", own, home)
	b.both(1_000_000)
	b.at("v", 1_000_000)
	b.goes(ask("v", "m", "push", home))
	var once sync.Once
	slow := freqcap.NewOnTestClock(over(t, client, func(conn net.Conn) net.Conn {
		return interrupted{Conn: conn, word: "drop", once: &once, do: func() {
			b.wants("there is room again", "given_back", b.report(sendgate.CapReport{User: "v", NotificationID: "m", Channel: "push", Fate: sendgate.Failed}))
			if !b.goes(asked) {
				t.Error("the second gate finds no room")
			}
		}}
	}), b.space, newGuard())
	if a := slow.Judge(context.Background(), []sendgate.CapAsk{asked}, 0)[0]; a.Err != nil || a.Admitted {
		t.Errorf("the first gate: %+v", a)
	}
	b.both(1_005_000)
	b.wants("used", "1 1", fmt.Sprint(b.taken(own), b.takenAtHome(home)))
	if b.goes(ask("u", "n2", "push", own)) {
		t.Error("two go where one may")
	}
}

// Ids beyond those that a record remembers are forgotten, the oldest first. Their
// slots count on, what is held for them lapses, and a failure gives them back.
func testMoreIDsThanAreRemembered(t *testing.T, client redis.UniversalClient) {
	b, c := onTestClock(t, client), bucketsOf(time.Hour, 1, 6)
	b.SetBounds(2, 250, 10_000)
	const began = int64(1_700_000_000_000) - int64(1_700_000_000_000)%3_600_000
	went := func(hour int64, hold time.Duration) (n int) {
		for i := range 8 {
			b.at("u", began+hour*3_600_000+int64(i))
			if b.goes(heldFor(hold, ask("u", fmt.Sprintf("n%d%d", hour, i), "push", c))) {
				n++
			}
		}
		return n
	}
	for hour := int64(0); hour < 6; hour += 2 {
		if n := went(hour, 0); n != 6 || b.taken(c) != 6 {
			t.Errorf("hour %d: %d of 6 went, %d are taken", hour, n, b.taken(c))
		}
	}
	if n := went(6, time.Minute); n != 6 {
		t.Errorf("%d of 6 are held", n)
	}
	b.wants("one that is forgotten failed", "given_back", b.tells("n61", "push", sendgate.Failed, 0))
	b.wants("another one was delivered", "settled", b.tells("n62", "push", sendgate.Delivered, 0))
	if n := b.taken(c); n != 5 {
		t.Errorf("%d slots are taken", n)
	}
	b.goes(heldFor(time.Hour, ask("u", "n63", "push", c))) // asked again, it is decided afresh
	if n := b.taken(c); n != 5 {
		t.Errorf("%d slots are taken when one is asked for again", n)
	}
	b.at("u", began+6*3_600_000+60_007)
	if n := b.taken(c); n != 2 {
		t.Errorf("%d slots are taken once the holds are over", n)
	}
}

// A record has room for so many holds: what needs more is an error that says so,
// and charges nothing. What holds nothing is judged as ever.
func testMoreHoldsThanThereIsRoomFor(t *testing.T, client redis.UniversalClient) {
	b, c := onTestClock(t, client), capOf(time.Hour, 100)
	b.SetBounds(10_000, 250, 20)
	b.at("u", 1_000_000)
	held := func(i int) sendgate.CapAsk { return heldFor(time.Minute, ask("u", fmt.Sprint("n", i), "push", c)) }
	for i := range 20 {
		b.goes(held(i))
	}
	for range 2 {
		a := b.Judge(context.Background(), []sendgate.CapAsk{held(20)}, 0)[0]
		if a.Admitted || a.Err == nil || !strings.Contains(a.Err.Error(), "too many holds") {
			t.Errorf("one more: %+v", a)
		}
	}
	if n := b.taken(c); n != 20 {
		t.Errorf("%d slots are taken", n)
	}
	b.at("u", 1_030_000)
	if !b.goes(held(3)) || !b.goes(ask("u", "m", "push", c)) {
		t.Error("what needs no other hold does not go")
	}
	b.wants("delivered", "settled", b.tells("n4", "push", sendgate.Delivered, 0))
	if !b.goes(held(20)) {
		t.Error("there is no room once one has ended")
	}
	b.at("u", 1_060_000)
	b.wants("used", "4", fmt.Sprint(b.taken(c))) // n3 and n20 are held, m and n4 are for good
}

// An ask may have more caps than one hold names.
func testAHoldUnderManyCaps(t *testing.T, client redis.UniversalClient) {
	b := onTestClock(t, client)
	var caps []sendgate.BoundCap
	for i := range 300 {
		caps = append(caps, capOf(time.Hour, 1, "campaign_id", fmt.Sprint("c", i)))
	}
	b.at("u", 1_000_000)
	if !b.goes(heldFor(time.Minute, ask("u", "n", "push", caps...))) || b.goes(ask("u", "m", "push", caps[299])) {
		t.Error("it is not held under all of them")
	}
	b.at("u", 1_060_000)
	if !b.goes(ask("u", "m", "push", caps...)) {
		t.Error("it has not lapsed under all of them")
	}
}
