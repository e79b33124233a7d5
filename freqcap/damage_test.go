package freqcap_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/freqcap"
	"github.com/sendgate/sendgate/quiet"
)

// fullRecord is a record with something of everything, and the caps that it is of.
func (b *rig) fullRecord() (record string, caps []sendgate.BoundCap) {
	b.t.Helper()
	now := parse(b.t, "2026-06-02T12:00:00Z")
	b.SetNow(func() time.Time { return now })
	b.both(now.UnixMilli())
	caps = []sendgate.BoundCap{capOf(time.Hour, 9), bucketsOf(24*time.Hour, 4, 9), calendarOf(quiet.Month, "UTC", 9), ofHousehold("h", time.Hour, 9)}
	b.goes(heldFor(time.Minute, ask("u", "n1", "push", caps...)))
	b.goes(ask("u", "n1", "email", caps...))
	b.goes(ask("u", "n2", "push", caps...))
	b.wants("failed", "given_back", b.tells("n2", "push", sendgate.Failed, 0))
	return b.client.Get(context.Background(), b.key("u")).Val(), caps[:3]
}

// damaged puts a record in the place of the user's, without a TTL, and asks. The
// record has one afterwards, whatever it holds.
func (b *rig) damaged(record string, caps []sendgate.BoundCap) sendgate.CapAnswer {
	b.t.Helper()
	b.client.Set(context.Background(), b.key("u"), record, 0)
	a := b.Judge(context.Background(), []sendgate.CapAsk{ask("u", "n3", "push", caps...)}, 0)[0]
	if a.Err != nil && a.Admitted {
		b.t.Errorf("%q: %+v", record, a)
	}
	if ttl := b.ttl("u"); ttl <= 0 || ttl > 100*24*time.Hour {
		b.t.Errorf("%q: TTL %s, %+v", record, ttl, a)
	}
	return a
}

// A record that ends early or is of another form is an error, of asks and of
// reports, and it expires.
func testDamagedRecords(t *testing.T, client redis.UniversalClient) {
	b := onTestClock(t, client)
	full, caps := b.fullRecord()
	records := []string{
		"", "x", "1", "1\x00", "1\x00\x01", "1\xff\xff", "1\x00\x00\x00", "1\x00\x00\xff\xff",
		"1\x00\x00\x00\x03r1h\x00\x00\x00\x00\x01\x00\x01\xff\xff\xff",
		"1\x00\x00\x00\x03z1h\x00\x00\x00\x00\x01\x00\x01\x00\x00\x00",                                                                        // a kind that is not known
		"1\x00\x00\x00\x06b24h/1\x00\x00\x00\x00\x01\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", // buckets of no width
		full + "\x00",
	}
	for at := range len(full) {
		records = append(records, full[:at])
	}
	for _, record := range records {
		a := b.damaged(record, append(caps, bucketsOf(24*time.Hour, 1, 9)))
		if _, err := freqcap.Decode(record, time.Now()); (a.Err == nil) != (err == nil) { // which may end with a section
			t.Errorf("%q is read as %v, and judged %+v", record, err, a)
		} else if err == nil {
			continue
		}
		if is := client.Get(context.Background(), b.key("u")).Val(); is != record {
			t.Errorf("%q was written over, by %q", record, is)
		}
		if r := b.Settle(context.Background(), []sendgate.CapReport{{User: "u", NotificationID: "n1", Fate: sendgate.Failed}})[0]; r.Err == nil {
			t.Errorf("%q: a report is %+v", record, r)
		}
	}
}

// Whatever has become of some bytes of a record, an ask and a report are answered,
// and whoever reads it is told something.
func testRecordsDamagedAnyhow(t *testing.T, client redis.UniversalClient) {
	b := onTestClock(t, client)
	full, caps := b.fullRecord()
	rapid.Check(t, func(r *rapid.T) {
		record := []byte(full)
		for range rapid.IntRange(1, 4).Draw(r, "bytes") {
			record[rapid.IntRange(0, len(record)-1).Draw(r, "at")] = rapid.Byte().Draw(r, "is")
		}
		if _, err := freqcap.Decode(string(record), time.Now()); err == nil {
			r.Log("can be read")
		}
		b.damaged(string(record), caps)
		b.Settle(context.Background(), []sendgate.CapReport{{User: "u", NotificationID: "n1", Fate: sendgate.Delivered}})
		if ttl := b.ttl("u"); ttl <= 0 {
			r.Fatalf("%q: TTL %s after a report", record, ttl)
		}
	})
}
