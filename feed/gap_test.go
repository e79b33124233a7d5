package feed_test

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/internal/redistest"
)

// gapRig is a follower that can be sent away, and a change that it has heard.
type gapRig struct {
	*desk
	p *proxy
	g *gate
}

func newGapRig(t *testing.T) gapRig {
	t.Helper()
	server := redistest.Start(t)
	d, p := newDesk(t, server.Client()), startProxy(t, server.Addr())
	g := follow(t, through(t, p))
	d.announce("u", 1)
	g.learns(t, "u", 1)
	if n := g.happened("gap"); n != 1 { // the one at the beginning
		t.Fatalf("%d gaps", n)
	}
	return gapRig{d, p, g}
}

// whileAway does something behind the follower's back.
func (r gapRig) whileAway(t *testing.T, do func()) {
	t.Helper()
	r.p.refuse()
	redistest.Until(t, "the follower is away", func() bool { return !r.g.Live() })
	do()
	r.p.heal()
	redistest.Until(t, "the follower is back", r.g.Live)
}

// gapped says that the follower reported a gap, that what it knew before it is
// no longer exact, and that it heard what the stream holds now.
func (r gapRig) gapped(t *testing.T, heard ...string) {
	t.Helper()
	redistest.Until(t, "the gap is reported", func() bool { return r.g.happened("gap") > 1 })
	for _, user := range heard {
		r.g.learns(t, user, 1)
	}
	if r.g.knows("u", 1) {
		t.Error("what may be out of date is exact")
	}
	r.announce("u", 2)
	r.g.learns(t, "u", 2)
	if n := r.g.happened("gap"); n != 2 {
		t.Errorf("%d gaps", n)
	}
}

func TestATrimmedStreamIsAGap(t *testing.T) {
	r := newGapRig(t)
	mate := r.mates("u", 3)
	r.whileAway(t, func() {
		for _, user := range mate {
			r.announce(user, 1)
		}
		r.run("XTRIM", r.stream("u"), "MAXLEN", 2)
	})
	r.gapped(t, mate[1], mate[2])
	if len(r.g.of(mate[0])) > 0 {
		t.Error("what was trimmed was heard")
	}
}

// mates are users of the same partition.
func (d *desk) mates(user string, n int) (mates []string) {
	for i := 0; len(mates) < n; i++ {
		if mate := fmt.Sprint("mate", i); d.stream(mate) == d.stream(user) {
			mates = append(mates, mate)
		}
	}
	return mates
}

// A stream that was empty when it was looked at, and has lost its beginning
// since, has a gap before its first entry.
func TestAStreamThatLostItsBeginningIsAGap(t *testing.T) {
	r := newGapRig(t)
	var fresh string
	for i := 0; fresh == "" || r.stream(fresh) == r.stream("u"); i++ {
		fresh = fmt.Sprint("fresh", i)
	}
	mate := r.mates(fresh, 3)
	r.whileAway(t, func() {
		for _, user := range mate {
			r.announce(user, 1)
		}
		r.run("XTRIM", r.stream(fresh), "MAXLEN", 2)
	})
	r.gapped(t, mate[1], mate[2])
}

func TestAnEmptiedRedisIsAGap(t *testing.T) {
	for _, when := range []string{"while it is away", "under it"} {
		t.Run(when, func(t *testing.T) {
			r := newGapRig(t)
			mate := r.mates("u", 1)[0]
			flush := func() {
				r.run("FLUSHALL")
				r.announce(mate, 1)
			}
			if when == "under it" {
				flush()
			} else {
				r.whileAway(t, flush)
			}
			r.gapped(t, mate)
		})
	}
}

// Nothing is announced after the loss, and it is noticed all the same.
func TestALossIsNoticedWithoutAMessage(t *testing.T) {
	r := newGapRig(t)
	r.run("DEL", r.stream("u"))
	r.gapped(t)
}

// Another master may have given the cursor's id to something else.
func TestAnotherMastersStreamIsAGap(t *testing.T) {
	for name, values := range map[string][]any{
		"another entry there": {"m", `{"u":"other","r":1}`, "p", "0-0"},
		"no message there":    {"x", "y"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newGapRig(t)
			id := r.entries("u")[0].ID
			r.whileAway(t, func() {
				r.run("DEL", r.stream("u"))
				r.run(append([]any{"XADD", r.stream("u"), id}, values...)...)
			})
			redistest.Until(t, "the gap is reported", func() bool { return r.g.happened("gap") > 1 })
			if name == "another entry there" {
				r.g.learns(t, "other", 1)
			}
			r.announce("u", 2)
			r.g.learns(t, "u", 2)
		})
	}
}

// An entry in the middle of the stream is gone.
func TestAHoleIsAGap(t *testing.T) {
	r := newGapRig(t)
	mate := r.mates("u", 3)
	r.whileAway(t, func() {
		for _, user := range mate {
			r.announce(user, 1)
		}
		r.run("XDEL", r.stream("u"), r.entries("u")[2].ID)
	})
	redistest.Until(t, "the gap is reported", func() bool { return r.g.happened("gap") == 2 })
	r.g.learns(t, mate[2], 1)
	if r.g.knows(mate[0], 1) {
		t.Error("what came before the hole is exact")
	}
}

// A message that was not published, or not delivered, is in the stream: it is
// read before the one that follows it, and soon even if none does.
func TestAMessageThatWasNotDelivered(t *testing.T) {
	for _, followed := range []bool{true, false} {
		t.Run(fmt.Sprint("followed by another: ", followed), func(t *testing.T) {
			r := newGapRig(t)
			mate := r.mates("u", 1)[0]
			r.run("XADD", r.stream("u"), "*", "m", `{"u":"lost","r":7}`, "p", r.entries("u")[0].ID)
			if followed {
				r.announce(mate, 1)
				r.g.learns(t, mate, 1)
			}
			redistest.Until(t, "the lost one is known", func() bool {
				c, exact, ok := r.g.Consent("lost")
				return ok && exact && c.Revision == 7
			})
			if n := r.g.happened("gap"); n != 1 {
				t.Errorf("%d gaps", n)
			}
			if n := r.g.happened("away"); n != 0 {
				t.Errorf("away %d times", n)
			}
		})
	}
}

// Neither what comes twice or late does harm, nor what is no message at all.
func TestWhatComesTwiceOrIsNonsense(t *testing.T) {
	r := newGapRig(t)
	r.announce("u", 2)
	r.g.learns(t, "u", 2)
	var publish []string
	for _, e := range r.entries("u") {
		publish = append(publish, fmt.Sprintf("%d %s %s %s", r.space.Partition("u"), e.ID, e.Values["p"], e.Values["m"]))
	}
	publish = append(publish, "", "nonsense", "999 1-0 0-0 x", "0 1-0 0-0", "0 x y z", publish[0])
	for _, payload := range publish {
		r.run("PUBLISH", r.space.Channel(), payload)
	}
	r.announce("u", 3)
	r.g.learns(t, "u", 3)
	if got := fmt.Sprint(r.g.of("u")); got != "[1 2 3]" {
		t.Errorf("heard %s", got)
	}
	if gaps, aways := r.g.happened("gap"), r.g.happened("away"); gaps != 1 || aways != 0 {
		t.Errorf("%d gaps, away %d times", gaps, aways)
	}
}

// A message that this version does not understand may be an opt-out.
func TestAMessageThatIsNotUnderstoodIsAGap(t *testing.T) {
	r := newGapRig(t)
	if err := r.client.XAdd(t.Context(), &redis.XAddArgs{
		Stream: r.stream("u"), Values: []string{"m", `{"u":"a","r":1,"s":"what?"}`, "p", r.entries("u")[0].ID},
	}).Err(); err != nil {
		t.Fatal(err)
	}
	r.gapped(t)
}

// TestAStreamThatWasEmptyAndLostIsAGap has a stream that nobody had written to
// when the follower came lose what was announced while it was away.
func TestAStreamThatWasEmptyAndLostIsAGap(t *testing.T) {
	r := newGapRig(t)
	fresh := "nobody-of-u's-partition"
	for r.space.Partition(sendgate.UserID(fresh)) == r.space.Partition("u") {
		fresh += "."
	}
	r.whileAway(t, func() {
		r.announce(fresh, 1)
		r.run("DEL", r.stream(fresh))
	})
	r.gapped(t)
}
