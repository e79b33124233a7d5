package prefs_test

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/prefs"
	"github.com/sendgate/sendgate/quiet"
)

// codecDiff compares as strictly as may be asked of what has been encoded and
// decoded: empty is absent, an instant is one in any zone, and JSON within a
// diff is the value that it stands for.
func codecDiff(want, got any) string {
	isJSON := func(p cmp.Path) bool { return p.Last().Type() == reflect.TypeFor[json.RawMessage]() }
	return cmp.Diff(want, got,
		cmp.FilterPath(func(p cmp.Path) bool { return !isJSON(p) }, cmpopts.EquateEmpty()),
		cmp.FilterPath(isJSON, cmp.Comparer(func(a, b json.RawMessage) bool {
			return reflect.DeepEqual(jsonValue(a), jsonValue(b))
		})),
	)
}

// jsonValue reads JSON. An empty value is as good as none: no diff has one, and
// the encoded form leaves it out.
func jsonValue(raw json.RawMessage) (v any) {
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	if d.Decode(&v) != nil || v == "" {
		return nil
	}
	switch c := v.(type) {
	case []any:
		if len(c) == 0 {
			return nil
		}
	case map[string]any:
		if len(c) == 0 {
			return nil
		}
	}
	return v
}

var (
	anyText = rapid.StringN(0, 40, 256)
	anyID   = rapid.Custom(func(t *rapid.T) sendgate.UserID {
		return sendgate.UserID(rapid.StringN(1, 40, 256).
			Filter(func(s string) bool { return sendgate.UserID(s).Validate("") == nil }).Draw(t, "id"))
	})
	// To the millisecond, which is what records keep. The zero time is no
	// time; the millisecond at the epoch reads back as no time, and is left out.
	anyTime = rapid.Custom(func(t *rapid.T) time.Time {
		if rapid.Bool().Draw(t, "none") {
			return time.Time{}
		}
		const years = 200 * 365 * 24 * 3600 * 1000
		ms := rapid.Int64Range(-years, years).Filter(func(ms int64) bool { return ms != 0 }).Draw(t, "ms")
		return time.UnixMilli(ms).In(time.FixedZone("", rapid.IntRange(-12, 14).Draw(t, "zone")*3600))
	})
	anyJSON = rapid.SampledFrom([]json.RawMessage{nil, json.RawMessage(`true`), json.RawMessage(`false`), json.RawMessage(`0`),
		json.RawMessage(`12345678901234567890`), json.RawMessage(`"ü \" \u0000 <&>"`), json.RawMessage(`{"start":"22:00","days":["mon"],"n":{"b":1,"a":null}}`)})
	anySource = rapid.SampledFrom([]sendgate.HoldSource{sendgate.SourceUser, sendgate.SourceOperator})
)

var anyDiff = rapid.Custom(func(t *rapid.T) prefs.Diff {
	return prefs.Diff{
		Kind:  rapid.SampledFrom([]prefs.DiffKind{prefs.DiffPreference, prefs.DiffQuietHours, prefs.DiffCap, prefs.DiffHold}).Draw(t, "kind"),
		Topic: anyText.Draw(t, "topic"), Channel: anyText.Draw(t, "channel"), Category: anyText.Draw(t, "category"),
		Window: anyText.Draw(t, "window"), Source: anySource.Draw(t, "source"),
		Before: anyJSON.Draw(t, "before"), After: anyJSON.Draw(t, "after"),
	}
})

var anyChange = rapid.Custom(func(t *rapid.T) prefs.Change {
	return prefs.Change{
		ID: anyText.Draw(t, "change id"), Revision: rapid.Int64().Draw(t, "revision"), At: anyTime.Draw(t, "at"),
		Meta: prefs.Meta{Actor: anyText.Draw(t, "actor"), Reason: anyText.Draw(t, "reason"), From: anyText.Draw(t, "from")},
		What: rapid.SliceOfN(anyDiff, 0, 4).Draw(t, "what"),
	}
})

var anyWindow = rapid.Custom(func(t *rapid.T) quiet.Window {
	return quiet.Window{
		Start: quiet.TimeOfDay(rapid.IntRange(0, 24*60-1).Draw(t, "start")),
		End:   quiet.TimeOfDay(rapid.IntRange(0, 24*60).Draw(t, "end")),
		Days:  quiet.Days(rapid.IntRange(0, 127).Draw(t, "days")),
	}
}).Filter(func(w quiet.Window) bool { return w.Validate() == nil })

var anyPreferences = rapid.Custom(func(t *rapid.T) *sendgate.Preferences {
	p := &sendgate.Preferences{Revision: rapid.Int64().Draw(t, "revision"), UpdatedAt: anyTime.Draw(t, "updated")}
	p.Settings = rapid.MapOfN(rapid.Custom(func(t *rapid.T) sendgate.Setting {
		return sendgate.Setting{Topic: anyText.Draw(t, "topic"), Channel: anyText.Draw(t, "channel")}
	}), rapid.Bool(), 0, 8).Draw(t, "settings")
	if rapid.Bool().Draw(t, "has quiet hours") {
		p.QuietHours = &sendgate.QuietHours{Enabled: rapid.Bool().Draw(t, "enabled"), Timezone: anyText.Draw(t, "zone")}
		if rapid.Bool().Draw(t, "has a window") {
			w := anyWindow.Draw(t, "window")
			p.QuietHours.Window = &w
		}
	}
	p.Caps = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) sendgate.UserCap {
		seconds := rapid.Int64Range(0, math.MaxInt64/int64(time.Second)).Draw(t, "seconds")
		return sendgate.UserCap{Category: anyText.Draw(t, "category"), Window: sendgate.Duration(seconds) * sendgate.Duration(time.Second), MaxCount: rapid.Int().Draw(t, "max")}
	}), 0, 4).Draw(t, "caps")
	p.Holds = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) sendgate.Hold {
		return sendgate.Hold{Source: anySource.Draw(t, "source"), Reason: anyText.Draw(t, "reason"), RetainEssential: rapid.Bool().Draw(t, "soft"), At: anyTime.Draw(t, "at")}
	}), 0, 2).Draw(t, "holds")
	return p
})

func TestCodecRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &prefs.Record{User: anyID.Draw(t, "user"), Preferences: *anyPreferences.Draw(t, "preferences"), Pending: rapid.SliceOfN(anyChange, 0, 3).Draw(t, "pending")}
		again(t, r, prefs.EncodeRecord, prefs.DecodeRecord)
		again(t, &r.Preferences, prefs.EncodePreferences, prefs.DecodePreferences)
		again(t, anyChange.Draw(t, "change"), prefs.EncodeChange, prefs.DecodeChange)
	})
}

// again encodes and decodes a value, and wants the same; encoding it twice must
// give the same bytes, because stores and caches compare them.
func again[T any](t interface {
	Helper()
	Fatalf(string, ...any)
}, want T, encode func(T) ([]byte, error), decode func([]byte) (T, error)) {
	t.Helper()
	data, err := encode(want)
	if err != nil {
		t.Fatalf("%+v does not encode: %v", want, err)
	}
	got, err := decode(data)
	if err != nil {
		t.Fatalf("%s does not decode: %v", data, err)
	}
	if d := codecDiff(want, got); d != "" {
		t.Fatalf("encoded as %s (-want +got):\n%s", data, d)
	}
	if twice, err := encode(got); err != nil || !slices.Equal(data, twice) {
		t.Fatalf("encoded as %s, and what that decodes to as %s, %v", data, twice, err)
	}
}

// goldenRecord has something in every place that is encoded.
func goldenRecord() *prefs.Record {
	at := time.Date(2026, 3, 29, 1, 30, 0, 123456789, time.UTC)
	return &prefs.Record{
		User: "a+b@x.io/ü",
		Preferences: sendgate.Preferences{
			Revision: 7, UpdatedAt: at,
			Settings: sendgate.Settings{{Topic: "promotions", Channel: "sms"}: true, {Topic: "promotions", Channel: "email"}: false, {Topic: "order_updates", Channel: "push"}: true},
			QuietHours: &sendgate.QuietHours{Enabled: true, Timezone: "America/New_York",
				Window: &quiet.Window{Start: 22 * 60, End: 7*60 + 30, Days: 0b0100010}},
			Caps: []sendgate.UserCap{{Category: "marketing", Window: sendgate.Duration(90 * time.Minute)}, {Category: "social", Window: sendgate.Duration(7 * 24 * time.Hour), MaxCount: 5}},
			Holds: []sendgate.Hold{
				{Source: sendgate.SourceOperator, Reason: "court order", At: at.Add(-time.Hour)},
				{Source: sendgate.SourceUser, Reason: "<all>", RetainEssential: true, At: at},
			},
		},
		Pending: []prefs.Change{{
			ID: "01JQ", Revision: 7, At: at, Meta: prefs.Meta{Actor: "support:42", Reason: "by phone", From: "2001:db8::1"},
			What: []prefs.Diff{
				{Kind: prefs.DiffPreference, Topic: "promotions", Channel: "email", After: json.RawMessage(`false`)},
				{Kind: prefs.DiffQuietHours, Before: json.RawMessage(`{"start":"21:00"}`)},
				{Kind: prefs.DiffCap, Category: "social", Window: "7d", Before: json.RawMessage(`3`), After: json.RawMessage(`5`)},
				{Kind: prefs.DiffHold, Source: sendgate.SourceOperator, After: json.RawMessage(`{"reason":"court order"}`)},
			},
		}},
	}
}

// goldenBytes are stored in tables out there. If they must change, the codec's
// version must too, and this form must go on being read.
var goldenBytes = strings.ReplaceAll(`1{"user":"a+b@x.io/ü","rev":7,
"set":{"order_updates":{"push":true},"promotions":{"email":false,"sms":true}},
"quiet":{"on":true,"win":true,"from":1320,"to":450,"days":34,"tz":"America/New_York"},
"caps":[{"cat":"marketing","win":5400,"max":0},{"cat":"social","win":604800,"max":5}],
"holds":[{"src":"operator","why":"court order","hard":true,"at":1774744200123},{"src":"user","why":"<all>","at":1774747800123}],
"at":1774747800123,
"pending":[{"id":"01JQ","rev":7,"at":1774747800123,"actor":"support:42","reason":"by phone","from":"2001:db8::1","what":[
{"kind":"preference","topic":"promotions","channel":"email","after":false},
{"kind":"quiet_hours","before":{"start":"21:00"}},
{"kind":"frequency_cap","category":"social","window":"7d","before":3,"after":5},
{"kind":"hold","source":"operator","after":{"reason":"court order"}}]}]}`, "\n", "")

func TestCodecGolden(t *testing.T) {
	want := goldenRecord()
	data, err := prefs.EncodeRecord(want)
	if err != nil || string(data) != goldenBytes {
		t.Errorf("the encoded form has changed: %v\n%s", err, data)
	}
	got, err := prefs.DecodeRecord([]byte(goldenBytes))
	if err != nil {
		t.Fatal(err)
	}
	want.UpdatedAt = want.UpdatedAt.Truncate(time.Millisecond)
	want.Pending[0].At = want.Pending[0].At.Truncate(time.Millisecond)
	for i := range want.Holds {
		want.Holds[i].At = want.Holds[i].At.Truncate(time.Millisecond)
	}
	if d := codecDiff(want, got); d != "" {
		t.Errorf("the stored form reads differently (-want +got):\n%s", d)
	}
}

// What a store or a cache may hold but this codec did not write.
func TestCodecRefuses(t *testing.T) {
	for _, data := range []string{
		"", "1", "0{}", "2{}", "{}", `1{`, `1{}{}`, `1[]`, `1{"rev":1,"rev":2}`, `1{"rev":"1"}`, `1{"rev":1.5}`, `1{"rev":9223372036854775808}`,
		"1{\"user\":\"\xff\"}", `1{"user":"\ud800"}`, `1{"set":{"t":{"c":1}}}`, `1{"quiet":{"win":true}}`,
		`1{"quiet":{"win":true,"from":1440,"to":60}}`, `1{"quiet":{"win":true,"from":60,"to":60}}`, `1{"quiet":{"win":true,"from":60,"to":120,"days":128}}`,
	} {
		if r, err := prefs.DecodeRecord([]byte(data)); err == nil {
			t.Errorf("DecodeRecord(%q) = %+v", data, r)
		}
	}
	if _, err := prefs.EncodeRecord(&prefs.Record{User: "\xff"}); err == nil {
		t.Error("an id that is not UTF-8 was encoded, and so repaired")
	}
}

func FuzzDecodeRecord(f *testing.F) {
	f.Add([]byte(goldenBytes))
	seed(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		if r, err := prefs.DecodeRecord(data); err == nil {
			again(t, r, prefs.EncodeRecord, prefs.DecodeRecord)
		}
	})
}

func FuzzDecodePreferences(f *testing.F) {
	f.Add([]byte(goldenBytes))
	seed(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		if p, err := prefs.DecodePreferences(data); err == nil {
			again(t, p, prefs.EncodePreferences, prefs.DecodePreferences)
		}
	})
}

func FuzzDecodeChange(f *testing.F) {
	change, err := prefs.EncodeChange(goldenRecord().Pending[0])
	if err != nil {
		f.Fatal(err)
	}
	f.Add(change)
	seed(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		if c, err := prefs.DecodeChange(data); err == nil {
			again(t, c, prefs.EncodeChange, prefs.DecodeChange)
		}
	})
}

// seed gives a fuzz target the forms that are easily read wrongly.
func seed(f *testing.F) {
	for _, data := range []string{
		``, `1`, `1{}`, `2{}`, `1null`, `1{"rev":-9223372036854775808,"at":9223372036854775807}`, `1{"at":-62135596800000}`,
		`1{"set":{"t":{}}}`, `1{"set":{"":{"":true}}}`, `1{"quiet":{}}`, `1{"quiet":{"from":5,"to":-5}}`,
		`1{"quiet":{"on":true,"win":true,"from":60,"to":1440,"days":127,"tz":"Mars/Base"}}`,
		`1{"caps":[{"cat":"","win":-1,"max":-1}]}`, `1{"holds":[{"src":"x","why":"","hard":true,"at":0}]}`,
		`1{"pending":[{"id":"","rev":0,"at":1,"what":[{"kind":"","before":null,"after":{ "a" : [ "\u0061" , 1e400 ] }}]}]}`,
		`1{"what":[{"kind":"","before":"","after":[]}]}`,
	} {
		f.Add([]byte(data))
	}
}
