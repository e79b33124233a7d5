package freqcap_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/freqcap"
	"github.com/sendgate/sendgate/internal/redistest"
)

// ask is one ask of a user on a channel.
func ask(user sendgate.UserID, id, channel string, caps ...sendgate.BoundCap) sendgate.CapAsk {
	return sendgate.CapAsk{User: user, NotificationID: id, Channel: channel, Caps: caps}
}

// goes asks, and tells whether it was admitted.
func (b *rig) goes(a sendgate.CapAsk) bool {
	b.t.Helper()
	answer := b.Judge(context.Background(), []sendgate.CapAsk{a}, 0)[0]
	if answer.Err != nil {
		b.t.Fatalf("%+v: %v", a, answer.Err)
	}
	return answer.Admitted
}

// report reports one outcome, and returns its status.
func (b *rig) report(r sendgate.CapReport) string {
	b.t.Helper()
	receipt := b.Settle(context.Background(), []sendgate.CapReport{r})[0]
	if receipt.Err != nil {
		b.t.Fatalf("%+v: %v", r, receipt.Err)
	}
	if receipt.Over > 0 {
		return fmt.Sprint(receipt.Status, " over ", receipt.Over)
	}
	return receipt.Status.String()
}

// tells is report of the user u.
func (b *rig) tells(id, channel string, fate sendgate.Fate, at int64, caps ...sendgate.BoundCap) string {
	b.t.Helper()
	r := sendgate.CapReport{User: "u", NotificationID: id, Channel: channel, Fate: fate, Caps: caps}
	if at > 0 {
		r.At = instant(at)
	}
	return b.report(r)
}

func (b *rig) wants(what, want, got string) {
	b.t.Helper()
	if got != want {
		b.t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// taken is how many slots of a cap the user u has taken.
func (b *rig) taken(c sendgate.BoundCap) int {
	b.t.Helper()
	return b.judge("u", "nobody asks for this", false, c).Caps[0].Used
}

func testGivingBack(t *testing.T, client redis.UniversalClient) {
	b, two := onTestClock(t, client), capOf(time.Minute, 2)
	b.at("u", 100_000)
	for _, id := range []string{"n1", "n2"} {
		if !b.goes(ask("u", id, "push", two)) {
			t.Fatal("no room")
		}
	}
	if b.goes(ask("u", "n3", "push", two)) {
		t.Error("three of two")
	}
	b.wants("of nobody", "unknown", b.tells("n9", "push", sendgate.Failed, 0))
	b.wants("on a channel that was never allowed", "unknown", b.tells("n1", "sms", sendgate.Dropped, 0))
	b.wants("of an attempt before the slot was taken", "unchanged", b.tells("n1", "push", sendgate.Failed, 89_999))
	b.wants("once", "given_back", b.tells("n1", "push", sendgate.Failed, 0))
	for range 3 {
		b.wants("again", "unchanged", b.tells("n1", "push", sendgate.Dropped, 0))
	}
	if n := b.taken(two); n != 1 {
		t.Errorf("%d slots are taken", n)
	}
	if !b.goes(ask("u", "n1", "push", two)) || b.goes(ask("u", "n4", "push", two)) {
		t.Error("an id that was given back is not decided afresh")
	}
	b.wants("of every channel", "given_back", b.tells("n1", "", sendgate.Failed, 0))
	b.wants("delivered", "settled", b.tells("n2", "push", sendgate.Delivered, 0))
	b.wants("delivered again", "unchanged", b.tells("n2", "push", sendgate.Delivered, 0))
	b.wants("failed after all", "unchanged", b.tells("n2", "push", sendgate.Failed, 0))
	if n := b.taken(two); n != 1 {
		t.Errorf("%d slots are taken", n)
	}
	b.at("u", 160_000) // a window later
	b.wants("after the window", "unknown", b.tells("n2", "push", sendgate.Failed, 0))
}

// A slot that several channels use comes back when all of them have failed; one
// that counts by channel comes back with its own.
func testASlotOfSeveralChannels(t *testing.T, client redis.UniversalClient) {
	b, all := onTestClock(t, client), capOf(time.Minute, 5)
	push, email := capOf(time.Minute, 5, "channel", "push"), capOf(time.Minute, 5, "channel", "email")
	b.at("u", 1000)
	b.goes(ask("u", "n", "push", all, push))
	b.goes(ask("u", "n", "email", all, email))
	b.goes(ask("u", "n", "email", all, email))
	counts := func(want string) {
		t.Helper()
		b.wants("slots", want, fmt.Sprint(b.taken(all), b.taken(push), b.taken(email)))
	}
	counts("1 1 1")
	b.wants("push fails", "given_back", b.tells("n", "push", sendgate.Failed, 0))
	counts("1 0 1")
	b.wants("push fails again", "unchanged", b.tells("n", "push", sendgate.Failed, 0))
	b.wants("e-mail fails", "given_back", b.tells("n", "email", sendgate.Failed, 0))
	counts("0 0 0")

	b.goes(ask("u", "m", "push", all))
	b.goes(ask("u", "m", "email", all))
	b.wants("e-mail is delivered", "settled", b.tells("m", "email", sendgate.Delivered, 0))
	b.wants("push fails", "settled", b.tells("m", "push", sendgate.Failed, 0))
	b.wants("e-mail fails after all", "unchanged", b.tells("m", "email", sendgate.Failed, 0))
	counts("1 0 0")
}

// A record has room for so many notes of who else uses a slot. Where it has lost
// one, the slot is no longer given back: somebody may have been notified.
func testMoreUsesThanAreNoted(t *testing.T, client redis.UniversalClient) {
	b, c := onTestClock(t, client), capOf(time.Hour, 100)
	b.SetBounds(10_000, 3, 10_000)
	for i := range 5 {
		b.at("u", int64(1_000_000+i))
		for _, channel := range []string{"push", "email"} {
			b.goes(ask("u", fmt.Sprint("n", i), channel, c))
		}
	}
	b.wants("push of one whose note is lost fails", "unchanged", b.tells("n0", "push", sendgate.Failed, 0))
	b.wants("push of one that is noted fails", "settled", b.tells("n4", "push", sendgate.Failed, 0))
	b.wants("its e-mail fails", "given_back", b.tells("n4", "email", sendgate.Failed, 0))
	if n := b.taken(c); n != 4 {
		t.Errorf("%d slots are taken", n)
	}
}

// Reports are taken as they are meant although a clock has stepped back, or that of
// the router is a little behind.
func testReportsAndClocks(t *testing.T, client redis.UniversalClient) {
	b, one := onTestClock(t, client), capOf(time.Hour, 1)
	used := func(what string, want int) {
		t.Helper()
		if n := b.taken(one); n != want {
			t.Errorf("%s: %d slots are taken", what, n)
		}
	}
	b.at("u", 10_000_000)
	b.goes(heldFor(2*time.Minute, ask("u", "n1", "push", one)))
	b.at("u", 9_999_500)
	b.wants("delivered, after a step back", "settled", b.tells("n1", "push", sendgate.Delivered, 0))
	b.at("u", 10_120_000)
	used("when the hold would have been over", 1)

	b.at("u", 20_000_000)
	b.goes(ask("u", "n2", "push", one))
	b.at("u", 19_999_500)
	b.wants("failed, after a step back", "given_back", b.tells("n2", "push", sendgate.Failed, 0))
	used("given back", 0)
	b.at("u", 20_000_000)
	b.goes(ask("u", "n3", "push", one))
	b.wants("of an attempt before", "unchanged", b.tells("n3", "push", sendgate.Failed, 19_989_999))
	b.wants("by a clock that is behind", "given_back", b.tells("n3", "push", sendgate.Failed, 19_990_000))
	used("given back", 0)
}

// What counts on delivery lapses unless delivery is reported; reported later it
// counts for the moment that it names.
func testHolds(t *testing.T, client redis.UniversalClient) {
	b, one := onTestClock(t, client), capOf(10*time.Minute, 1)
	held := func(id string) sendgate.CapAsk {
		a := ask("u", id, "push", one)
		a.Hold = 2 * time.Minute
		return a
	}
	b.at("u", 1_000_000)
	if !b.goes(held("n1")) || b.goes(held("n2")) {
		t.Fatal("a hold takes no slot")
	}
	b.at("u", 1_119_999)
	if b.goes(held("n2")) {
		t.Error("the hold has lapsed early")
	}
	b.at("u", 1_120_000)
	if n := b.taken(one); n != 0 {
		t.Errorf("%d slots are taken once the hold is over", n)
	}
	if !b.goes(held("n2")) {
		t.Error("the hold stands on")
	}
	b.wants("delivered in time", "settled", b.tells("n2", "push", sendgate.Delivered, 0))
	b.at("u", 1_300_000)
	if b.taken(one) != 1 || b.goes(held("n3")) {
		t.Error("what was delivered has lapsed")
	}
	b.wants("delivered late, into a window that is full", "settled over 1", b.tells("n1", "push", sendgate.Delivered, 1_119_000))
	if n := b.taken(one); n != 2 {
		t.Errorf("%d slots are taken", n)
	}
	b.wants("again", "unchanged", b.tells("n1", "push", sendgate.Delivered, 1_119_000))
	b.at("u", 1_719_000) // a window after the moment that it named
	if n := b.taken(one); n != 1 {
		t.Errorf("%d slots are taken", n)
	}
	b.goes(held("n4"))
	b.at("u", 1_720_000)
	if !b.goes(held("n4")) {
		t.Fatal("no room")
	}
	b.wants("failed", "given_back", b.tells("n4", "push", sendgate.Failed, 0))
	if n := b.taken(one); n != 0 {
		t.Errorf("%d slots are taken", n)
	}
}

// The router failed open: nobody asked, and it was delivered.
func testADeliveryWithoutAReservation(t *testing.T, client redis.UniversalClient) {
	b, one, day := onTestClock(t, client), capOf(time.Minute, 1), capOf(24*time.Hour, 5, "campaign_id", "c")
	b.at("u", 1_000_000)
	b.wants("without fields", "unknown", b.tells("n1", "push", sendgate.Delivered, 0))
	b.wants("with them", "settled", b.tells("n1", "push", sendgate.Delivered, 0, one, day))
	for range 2 {
		b.wants("again", "unchanged", b.tells("n1", "push", sendgate.Delivered, 0, one, day))
	}
	b.wants("another", "settled over 1", b.tells("n2", "push", sendgate.Delivered, 0, one, day))
	b.wants("of a moment that only the day counts", "settled", b.tells("n3", "push", sendgate.Delivered, 900_000, one, day))
	b.wants("of long ago", "expired", b.tells("n4", "push", sendgate.Delivered, 1, one))
	b.wants("slots", "2 3", fmt.Sprint(b.taken(one), b.taken(day)))
	if b.goes(ask("u", "n5", "push", one)) {
		t.Error("there is room")
	}
	if !b.goes(ask("u", "n2", "push", one, day)) {
		t.Error("what was delivered under this id is not known")
	}
}

func TestGivingBackAtOnce(t *testing.T) {
	t.Parallel()
	server, space, ten := redistest.Start(t), newSpace(t), capOf(time.Hour, 10)
	gates := []*freqcap.Limiter{freqcap.New(server.Client(), space, newGuard()), freqcap.New(server.Client(), space, newGuard())}
	b := &rig{t, server.Client(), space, gates[0]}
	for i := range 10 {
		b.goes(ask("u", fmt.Sprint("n", i), "push", ten))
	}
	var mu sync.Mutex
	counts := map[sendgate.Status]int{}
	var all sync.WaitGroup
	for i := range 60 {
		all.Go(func() {
			r := gates[i%2].Settle(context.Background(), []sendgate.CapReport{
				{User: "u", NotificationID: "n3", Channel: "push", Fate: sendgate.Failed},
				{User: "u", NotificationID: "n4", Fate: sendgate.Dropped},
			})
			mu.Lock()
			defer mu.Unlock()
			for _, receipt := range r {
				if receipt.Err != nil {
					t.Error(receipt.Err)
				}
				counts[receipt.Status]++
			}
		})
	}
	all.Wait()
	if counts[sendgate.StatusGivenBack] != 2 || counts[sendgate.StatusUnchanged] != 118 || b.taken(ten) != 8 {
		t.Errorf("%v, and %d slots are taken", counts, b.taken(ten))
	}
}
