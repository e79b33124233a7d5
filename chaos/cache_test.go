package chaos_test

import (
	"fmt"
	"time"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/keyspace"
)

// redisFull has Redis refuse all writes, as one without memory does.
func redisFull(r *rig) {
	for _, most := range []string{"1", "0"} { // none is without a limit
		if err := r.client.ConfigSet(r.t.Context(), "maxmemory", most).Err(); err != nil {
			r.t.Fatal(err)
		}
		if most == "1" {
			r.lasts(2500 * time.Millisecond)
		}
	}
}

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
