package chaos_test

import (
	"fmt"
	"time"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/keyspace"
	"github.com/sendgate/sendgate/prefs"
)

// oldFill has a gate read a record from the store before a change, and bring it
// to the record cache after the change has been there and was evicted. Nobody
// else asks about these people meanwhile.
func oldFill(r *rig) {
	timely := 0
	for i := range 20 {
		if r.fillLate(fmt.Sprintf("filled late %d in %s", i, r.row.Load().fault)) {
			timely++
		}
		if timely == 3*r.scale {
			return
		}
	}
	r.t.Fatalf("this machine is too slow: only %d reads were still waited for when they were answered", timely)
}

// readLimit is how long a gate waits for the store, less what it takes to fill
// the cache.
const readLimit = 800 * time.Millisecond

// fillLate does so for one user, and tells whether the gate was still waiting
// for what it had begun to read.
func (r *rig) fillLate(user string) (timely bool) {
	reader, writer, ctx := r.gates[0], r.gates[1], r.t.Context()
	key, p := r.space.Record(sendgate.UserID(user)), r.ledger.stranger(user)
	defer r.ledger.join(p)
	ended := r.beginRead(reader, p)
	began := time.Now()
	out := setting(user, topics[0], false, func(s state) state { s.noPromotions = true; return s })
	r.change(r.row.Load(), p, out, writer)
	evicted := r.client.Del(ctx, key).Err()
	timely = time.Since(began) < readLimit
	reader.store.heal()
	<-ended
	if evicted != nil {
		r.t.Fatal(evicted)
	}
	older := func() bool {
		revision, _, ok := keyspace.ParseRecordValue(r.client.Get(ctx, key).Val())
		_, least, _, _, _ := r.ledger.stands(p)
		return ok && revision < least
	}
	if within(fillTime, older) {
		row := r.row.Load()
		row.blame(&row.lost, "the record cache holds what was read of %s before a change that was evicted since", user)
	}
	return timely
}

// beginRead has a gate read somebody's record from the store, and holds up what
// it is answered. The channel is closed when the check has ended.
func (r *rig) beginRead(g *gate, p *person) (ended <-chan struct{}) {
	sprung := g.store.holdAt(true, sent(p.id)) // nothing else is asked about them
	url, _ := g.at()
	for limit := time.Now().Add(patience); time.Now().Before(limit); {
		done := make(chan struct{})
		go func() {
			defer close(done)
			ask(url, []*person{p})
		}()
		select {
		case <-sprung:
			return done
		case <-done: // Redis was too slow, or there is a record
		}
		if err := r.client.Del(r.t.Context(), r.space.Record(sendgate.UserID(p.id))).Err(); err != nil {
			r.t.Fatal(err)
		}
	}
	r.t.Fatal("a check without a record in the cache does not read the store")
	return nil
}

// fillTime is longer than a fill takes whose answer from the store is there.
const fillTime = 300 * time.Millisecond

// sweepReads is for how long the sweep waits for a read, less what it takes to
// go on from there.
const sweepReads = 1700 * time.Millisecond

// oldSweep has a gate's sweep read a change from the store, and get the answer
// after a newer change was acknowledged and a filter was built of that and
// swapped in. Once it is the read by which the gate learns of what is pending,
// and once the one by which it carries that on, which falls to either gate.
func oldSweep(r *rig) {
	timely := [2]int{}
	for i := range 40 {
		which := i % len(timely)
		if timely[which] < r.scale && r.sweepLate(fmt.Sprintf("swept late %d in %s", i, r.row.Load().fault), which) {
			timely[which]++
		}
		if timely[0]+timely[1] == len(timely)*r.scale {
			return
		}
	}
	r.t.Fatalf("this machine is too slow: only %d reads were still waited for when they were answered", timely)
}

// sweepLate does so for one user, with one of the reads that come one after the
// other, and tells whether the gate was still waiting for it.
func (r *rig) sweepLate(user string, which int) (timely bool) {
	reader, writer, p := r.gates[0], r.gates[1], r.ledger.stranger(user)
	defer r.ledger.join(p)
	reads := 0
	read := sent(".BatchGetItem", tablePrefix+"-records", user) // nobody asks about them
	sprung := reader.store.holdAt(true, func(data []byte) bool {
		if read(data) {
			reads++
		}
		return reads > which
	})
	defer reader.store.heal()
	on := which == 0
	r.leaveBehind(p, on)
	select {
	case <-sprung:
	case <-time.After(sweptWithin):
		return false // the other gate has carried it on
	}
	began := time.Now()
	r.change(r.row.Load(), p, promotions(user, !on), writer)
	r.buildWell()
	return time.Since(began) < sweepReads
}

// sweptWithin is longer than it takes two sweeps to find a change.
const sweptWithin = 4500 * time.Millisecond

// promotions switches somebody's promotions.
func promotions(user string, on bool) op {
	return setting(user, topics[0], on, func(s state) state { s.noPromotions = !on; return s })
}

// leaveBehind has a change be in the store alone, as a gate leaves it that is
// killed right after.
func (r *rig) leaveBehind(p *person, on bool) {
	acknowledged, done := r.ledger.try(p, promotions(p.id, on))
	defer done()
	record, err := r.store.Get(r.t.Context(), sendgate.UserID(p.id))
	if err != nil {
		r.t.Fatal(err)
	}
	now, before := time.Now().UTC().Truncate(time.Millisecond), record.Revision
	record.Revision, record.UpdatedAt = before+1, now
	record.Settings = sendgate.Settings{{Topic: topics[0].name, Channel: topics[0].channel}: on}
	record.Pending = append(record.Pending, prefs.Change{ID: "left behind", Revision: record.Revision, At: now})
	if err := r.store.Put(r.t.Context(), record, before); err != nil {
		r.t.Fatal(err)
	}
	acknowledged(nowhere)
}
