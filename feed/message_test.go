package feed

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sendgate/sendgate"
)

func same(a, b sendgate.Consent) bool {
	return a.User == b.User && a.Revision == b.Revision && a.Global == b.Global && a.Hard == b.Hard && maps.Equal(a.Settings, b.Settings)
}

func aConsent() *rapid.Generator[sendgate.Consent] {
	return rapid.Custom(func(t *rapid.T) sendgate.Consent {
		user := rapid.StringN(1, 60, 256).Filter(func(id string) bool { return sendgate.UserID(id).Validate("u") == nil })
		c := sendgate.Consent{
			User: sendgate.UserID(user.Draw(t, "user")), Revision: rapid.Int64Min(1).Draw(t, "revision"),
			Global: rapid.Bool().Draw(t, "global"), Hard: rapid.Bool().Draw(t, "hard"),
		}
		for range rapid.IntRange(0, 6).Draw(t, "settings") {
			if c.Settings == nil {
				c.Settings = sendgate.Settings{}
			}
			name := rapid.StringMatching(`[a-z0-9][a-z0-9_.-]{0,8}`)
			c.Settings[sendgate.Setting{Topic: name.Draw(t, "topic"), Channel: name.Draw(t, "channel")}] = rapid.Bool().Draw(t, "on")
		}
		return c
	})
}

func TestAMessageComesBackAsItWas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := aConsent().Draw(t, "consent")
		text, err := encode(c)
		if err != nil {
			t.Fatal(err)
		}
		got, err := decode(text)
		if err != nil || !same(got, c) {
			t.Fatalf("%s: %+v, %v; want %+v", text, got, err, c)
		}
		if again, err := encode(got); err != nil || again != text {
			t.Fatalf("%s, and then %s", text, again)
		}
	})
}

// What is announced is what gates understand, or one message is a gap at each.
func TestWhatNobodyUnderstandsIsNotSent(t *testing.T) {
	for _, c := range []sendgate.Consent{
		{User: "u"}, {Revision: 1}, {User: "u", Revision: -1}, {User: "a\xff", Revision: 1}, {User: "a\nb", Revision: 1},
		{User: sendgate.UserID(strings.Repeat("x", 257)), Revision: 1},
		{User: "u", Revision: 1, Settings: sendgate.Settings{{Topic: "\xff", Channel: "push"}: true}},
	} {
		if text, err := encode(c); err == nil {
			t.Errorf("%+v is sent as %s", c, text)
		}
	}
}

func TestDecodeIsStrict(t *testing.T) {
	for _, text := range []string{
		"", "null", "{}", "[]", `{"u":"a"}`, `{"r":1}`, `{"u":"a","r":0}`, `{"u":"a","r":-1}`, `{"u":"","r":1}`,
		`{"u":"a","r":1}x`, `{"u":"a","u":"b","r":1}`, "{\"u\":\"a\xff\",\"r\":1}", `{"u":"\ud800","r":1}`, `{"U":"a","R":1}`,
		`{"u":"a","r":1.5}`, `{"u":"a","r":1,"s":{"t":{"c":1}}}`, `{"u":"a\u0000","r":1}`, `{"u":"a","r":1,"s":{"t":{"c":true,"c":false}}}`,
	} {
		if c, err := decode(text); err == nil {
			t.Errorf("%s is taken for %+v", text, c)
		}
	}
	// Another version may say more.
	if c, err := decode(`{"u":"a","r":1,"new":{"x":[1]}}`); err != nil || c.Revision != 1 {
		t.Errorf("%+v, %v", c, err)
	}
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{`{"u":"a","r":1,"g":true,"s":{"t":{"c":false}}}`, `{"u":"a","r":1`, "", `{"u":"\ud83d\ude42","r":9223372036854775807}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := decode(text)
		if err != nil {
			return
		}
		if c.User.Validate("u") != nil || c.Revision < 1 {
			t.Fatalf("%q is taken for %+v", text, c)
		}
		again, err := encode(c)
		if err != nil {
			t.Fatalf("%+v came, and cannot be sent: %v", c, err)
		}
		if same2, err := decode(again); err != nil || !same(same2, c) {
			t.Fatalf("%q: %+v, and then %+v, %v", text, c, same2, err)
		}
	})
}

func TestParseAnnouncement(t *testing.T) {
	for payload, want := range map[string]announcement{
		"255 1-0 0-0 a b c":          {partition: 255, entry: entry{at: sendgate.Offset{Millis: 1}, text: "a b c"}},
		"7 5-2 5-1 #token":           {partition: 7, entry: entry{at: sendgate.Offset{Millis: 5, Seq: 2}, previous: sendgate.Offset{Millis: 5, Seq: 1}, text: "#token"}},
		"0 1-0 0-0 ":                 {entry: entry{at: sendgate.Offset{Millis: 1}}},
		"filter 42":                  {snapshot: 42},
		"filter 1":                   {snapshot: 1},
		"filter 9223372036854775807": {snapshot: 1<<63 - 1},
	} {
		if a, err := parseAnnouncement(payload, 256); err != nil || a != want {
			t.Errorf("%q: %+v, %v", payload, a, err)
		}
	}
	for _, payload := range []string{
		"", "1", "1 1-0 0-0", "256 1-0 0-0 x", "-1 1-0 0-0 x", "x 1-0 0-0 x", "1 1 0-0 x", "1 1-0 0 x", "1 1-x 0-0 x", "1 01-0 0-0 x",
		"1 +1-0 0-0 x", "1 99999999999999999999-0 0-0 x", "1 1-0-0 0-0 x", "1  1-0 0-0 x", "1 0-0 0-0 x",
		"filter", "filter ", "filter x", "filter -1", "filter 0", "filter 00", "filter 042", "filter +42", "filter 42 ", "filter  42",
		"filter 42\n", "filter 4.2", "filter 9223372036854775808", "filter 1-0 0-0 x", "Filter 42", "filters 42", "filter42", " filter 42",
	} {
		if a, err := parseAnnouncement(payload, 256); err == nil {
			t.Errorf("%q is taken for %+v", payload, a)
		}
	}
}

func FuzzParseAnnouncement(f *testing.F) {
	for _, seed := range []string{
		"0 1-1 0-0 {}", "255 18446744073709551615-1 2-0 x", "1 1", "   ", "1 1-0 0-0 ", "3 1-0 0-0 #token",
		"filter 42", "filter -1", "filter ", "filter x", "filter 9223372036854775808",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, payload string) {
		a, err := parseAnnouncement(payload, 256)
		again := fmt.Sprintf("%d %s %s %s", a.partition, a.entry.at, a.entry.previous, a.entry.text)
		switch {
		case err != nil:
			return
		case a.snapshot != 0:
			again = fmt.Sprintf("filter %d", a.snapshot)
			if a.snapshot < 1 || a.entry != (entry{}) {
				t.Fatalf("%q is taken for %+v", payload, a)
			}
		case a.partition < 0 || a.partition > 255 || !a.entry.at.After(noEntry):
			t.Fatalf("%q is taken for %+v", payload, a)
		}
		// strconv takes a partition's number with a sign and zeros before it.
		if parsed, err := parseAnnouncement(again, 256); err != nil || parsed != a {
			t.Fatalf("%q is taken for %+v, and %q for %+v, %v", payload, a, again, parsed, err)
		}
	})
}

// A mark is told from a message by how it begins.
func TestNoMessageIsAMark(t *testing.T) {
	for _, text := range []string{"", "#", "#01J", "#{}"} {
		if !isMark(text) {
			t.Errorf("%q is no mark", text)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text, err := encode(aConsent().Draw(t, "consent"))
		if err != nil || isMark(text) || text[0] != '{' {
			t.Fatalf("%s, %v", text, err)
		}
	})
}
