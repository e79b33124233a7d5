package storetest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/prefs"
	"github.com/sendgate/sendgate/quiet"
)

// day is when the suite's records are made. Records keep milliseconds.
var day = time.Date(2026, 3, 29, 1, 30, 0, 123e6, time.UTC)

// oddUsers are ids that stores have taken for one another, or for syntax.
var oddUsers = []sendgate.UserID{
	"a", "A", "ab", "a+b@x.io", "a b@x.io", "a b", "a%2Bb", "a%2Bb@x.io", "a:b", "{a}", "a{b}c", "a/b", "a%2Fb", "a|b", "a,b", "a#1",
	" a", "a ", " ", ".", "..", "*", "%", `"`, `\`, "'", "null", "0", "00", "-1",
	"ÜSER", "üser", "u\u0308ser", "\u00e9", "e\u0301", "K", "\u212a", "a\u00a0b", "a\u200bb", "a\u2028b", "\ufffd", "\U0010ffff", "用户", "<a&b>",
	sendgate.UserID(strings.Repeat("x", sendgate.MaxIDBytes)),
	sendgate.UserID(strings.Repeat("x", sendgate.MaxIDBytes-1)),
	sendgate.UserID(strings.Repeat("x", sendgate.MaxIDBytes-1) + "y"),
	sendgate.UserID(strings.Repeat("é", sendgate.MaxIDBytes/2)),
}

// plain is a record with one setting, made by one change that has got through.
func plain(user sendgate.UserID, revision int64) *prefs.Record {
	return &prefs.Record{User: user, Preferences: sendgate.Preferences{
		Revision:  revision,
		Settings:  sendgate.Settings{{Topic: "promotions", Channel: "email"}: revision%2 == 0},
		UpdatedAt: day.Add(time.Duration(revision%1000) * time.Second),
	}}
}

// waiting is a record whose change, made at the given time, is pending.
func waiting(user sendgate.UserID, revision int64, since time.Time) *prefs.Record {
	r := plain(user, revision)
	r.Pending = []prefs.Change{change(revision, since)}
	return r
}

// change is a change with every kind of diff in it.
func change(revision int64, at time.Time) prefs.Change {
	return prefs.Change{
		ID: fmt.Sprintf("change-%d", revision), Revision: revision, At: at,
		Meta: prefs.Meta{Actor: "support:42", Reason: `asked by "phone" – ü`, From: "2001:db8::1"},
		What: []prefs.Diff{
			{Kind: prefs.DiffPreference, Topic: "promotions", Channel: "email", After: json.RawMessage(`false`)},
			{Kind: prefs.DiffQuietHours, Before: json.RawMessage(`{"enabled":true,"start":"22:00"}`)},
			{Kind: prefs.DiffCap, Category: "marketing", Window: "24h", Before: json.RawMessage(`3`), After: json.RawMessage(`0`)},
			{Kind: prefs.DiffHold, Source: sendgate.SourceOperator, After: json.RawMessage(`{"reason":"court order"}`)},
		},
	}
}

// rich is a record with something in every place.
func rich(user sendgate.UserID, revision int64) *prefs.Record {
	r := plain(user, revision)
	r.Settings = sendgate.Settings{
		{Topic: "promotions", Channel: "email"}: false, {Topic: "promotions", Channel: "sms"}: true,
		{Topic: "order_updates", Channel: "push"}: true, {Topic: "a.b/c", Channel: "in_app"}: false,
	}
	r.QuietHours = &sendgate.QuietHours{
		Enabled: true, Timezone: "America/New_York",
		Window: &quiet.Window{Start: 22 * 60, End: 7*60 + 30, Days: 0b0100110},
	}
	r.Caps = []sendgate.UserCap{
		{Category: "marketing", Window: sendgate.Duration(90 * time.Minute), MaxCount: 0},
		{Category: "marketing", Window: sendgate.Duration(7 * 24 * time.Hour), MaxCount: 5},
		{Category: "social", Window: sendgate.Duration(time.Second), MaxCount: 1},
	}
	r.Holds = []sendgate.Hold{
		{Source: sendgate.SourceOperator, Reason: "court order", RetainEssential: false, At: day.Add(-time.Hour)},
		{Source: sendgate.SourceUser, Reason: "unsubscribed from all – ü", RetainEssential: true, At: day},
	}
	r.Pending = []prefs.Change{change(revision-1, day), change(revision, day.Add(time.Millisecond))}
	return r
}

// large is a record of just under prefs.MaxRecordBytes: a person's own settings
// by the thousand, and a pending change that fills the rest.
func large(t *testing.T, user sendgate.UserID) *prefs.Record {
	t.Helper()
	r := rich(user, 7)
	for i := range 4000 {
		r.Settings[sendgate.Setting{Topic: fmt.Sprintf("topic-%05d", i), Channel: "email"}] = i%2 == 0
	}
	fill := func(n int) {
		r.Pending[1].What[3].After, _ = json.Marshal(strings.Repeat("x", n))
	}
	fill(0)
	const slack = 64
	fill(prefs.MaxRecordBytes - encodedBytes(t, r) - slack)
	if n := encodedBytes(t, r); n > prefs.MaxRecordBytes || n < prefs.MaxRecordBytes-2*slack {
		t.Fatalf("the large record has %d bytes; this test wants it just under %d", n, prefs.MaxRecordBytes)
	}
	return r
}

func encodedBytes(t *testing.T, r *prefs.Record) int {
	t.Helper()
	data, err := prefs.EncodeRecord(r)
	if err != nil {
		t.Fatal(err)
	}
	return len(data)
}

// users makes n ids.
func users(n int) []sendgate.UserID {
	us := make([]sendgate.UserID, n)
	for i := range us {
		us[i] = sendgate.UserID(fmt.Sprintf("user-%d", i))
	}
	return us
}

// usersOf makes n ids that belong to one shard of the pending index.
func usersOf(shard, n int) (us []sendgate.UserID) {
	for i := 0; len(us) < n; i++ {
		if u := sendgate.UserID(fmt.Sprintf("user-%d", i)); prefs.PendingShard(u) == shard {
			us = append(us, u)
		}
	}
	return us
}
