package quiet

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestParseTimeOfDay(t *testing.T) {
	for s, want := range map[string]TimeOfDay{
		"00:00": 0, "00:01": 1, "07:30": 450, "09:59": 599, "10:00": 600, "23:59": 1439, "24:00": 1440,
	} {
		got, err := ParseTimeOfDay(s)
		if err != nil || got != want || got.String() != s {
			t.Errorf("ParseTimeOfDay(%q) = %d (%s), %v; want %d", s, got, got, err, want)
		}
	}
	for _, s := range []string{
		"", "7:00", "07:0", "07:000", "007:00", "24:01", "25:99", "25:00", "12:60", "99:99", "-1:00", "+1:00",
		"07.00", "07:00 ", " 07:00", "07:00\n", "0x:00", "07 00", "0７:00", "٠٧:٠٠", "07:00:00", "7:00pm", "::::",
	} {
		_, err := ParseTimeOfDay(s)
		var e *Error
		if !errors.As(err, &e) || e.Field != "" || e.Detail == "" {
			t.Errorf("ParseTimeOfDay(%q): error %#v", s, err)
		}
	}
	if got := TimeOfDay(-1).String(); got != "TimeOfDay(-1)" {
		t.Errorf("String of -1 is %q", got)
	}
}

func TestParseDays(t *testing.T) {
	for _, c := range []struct {
		names []string
		want  Days
		back  []string
	}{
		{nil, 0, nil},
		{[]string{}, 0, nil},
		{[]string{"sun"}, 1, []string{"sun"}},
		{[]string{"sun", "mon"}, 3, []string{"mon", "sun"}},
		{[]string{"sat", "wed", "mon"}, 1<<6 | 1<<3 | 1<<1, []string{"mon", "wed", "sat"}},
		{[]string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}, 0, nil},
	} {
		got, err := ParseDays(c.names)
		if err != nil || got != c.want || !slices.Equal(got.Names(), c.back) || (got.Names() == nil) != (c.back == nil) {
			t.Errorf("ParseDays(%q) = %b (%q), %v; want %b (%q)", c.names, got, got.Names(), err, c.want, c.back)
		}
	}
	for _, names := range [][]string{{""}, {"Mon"}, {"monday"}, {"mon "}, {"0"}, {"mon", "mon"}, {"mon", "tue", "mon"}} {
		_, err := ParseDays(names)
		wantField(t, err, "days")
	}
	if names := allDays.Names(); names != nil {
		t.Errorf("all seven days are named %q", names)
	}
}

func TestNewWindow(t *testing.T) {
	for _, c := range []struct {
		start, end string
		days       []string
		field      string // "" for a window that is legal
	}{
		{"22:00", "07:00", nil, ""},
		{"00:00", "24:00", []string{"sat", "sun"}, ""},
		{"00:00", "23:59", nil, ""},
		{"00:01", "00:00", nil, ""},
		{"20:00", "24:00", nil, ""},
		{"20:00", "00:00", nil, ""},
		{"24:00", "07:00", nil, "start"},
		{"24:00", "24:00", nil, "start"},
		{"24:01", "07:00", nil, "start"},
		{"7:00", "09:00", nil, "start"},
		{"", "09:00", nil, "start"},
		{"07:00", "25:99", nil, "end"},
		{"07:00", "24:01", nil, "end"},
		{"07:00", "", nil, "end"},
		{"10:00", "10:00", nil, "end"},
		{"00:00", "00:00", nil, "end"},
		{"10:00", "10:00", []string{"mon"}, "end"},
		{"00:00", "24:00", nil, "end"},
		{"00:00", "24:00", []string{"mon", "tue", "wed", "thu", "fri", "sat", "sun"}, "end"},
		{"22:00", "07:00", []string{"mon", "mon"}, "days"},
		{"22:00", "07:00", []string{"Mon"}, "days"},
	} {
		w, err := NewWindow(c.start, c.end, c.days)
		if c.field != "" {
			wantField(t, err, c.field)
			continue
		}
		if err != nil || w.Start.String() != c.start || w.End.String() != c.end {
			t.Errorf("NewWindow(%q, %q, %q) = %v, %v", c.start, c.end, c.days, w, err)
		}
	}
	for field, w := range map[string]Window{
		"start": {Start: -1, End: 60},
		"end":   {Start: 0, End: 1441},
		"days":  {Start: 0, End: 60, Days: 1 << 7},
	} {
		wantField(t, w.Validate(), field)
	}
}

func TestErrorsAreShort(t *testing.T) {
	_, err := NewWindow(strings.Repeat("ü", 1<<20), "07:00", nil)
	wantField(t, err, "start")
	if len(err.Error()) > 300 {
		t.Errorf("the error is %d bytes long", len(err.Error()))
	}
}

func TestCoverWeek(t *testing.T) {
	all := func(ws ...Window) []Window { return ws }
	for _, c := range []struct {
		name string
		ws   []Window
		want bool
	}{
		{"none", nil, false},
		{"an empty one", all(Window{}), false},
		{"one day", all(Window{0, 1440, 1 << 1}), false},
		{"every day", all(Window{0, 1440, 0}), true},
		{"all but a minute", all(mustWindow(t, "12:01", "12:00")), false},
		{"that minute too", all(mustWindow(t, "12:01", "12:00"), mustWindow(t, "12:00", "12:01")), true},
		{"that minute on six days", all(mustWindow(t, "12:01", "12:00"),
			mustWindow(t, "12:00", "12:01", "mon", "tue", "wed", "thu", "fri", "sat")), false},
		{"halves", all(mustWindow(t, "22:00", "10:00"), mustWindow(t, "10:00", "22:00")), true},
		{"working days and the rest", all(mustWindow(t, "00:00", "24:00", "sat", "sun"),
			mustWindow(t, "00:00", "24:00", "mon", "tue", "wed", "thu", "fri")), true},
		{"the night into Sunday is missing", all(mustWindow(t, "06:00", "24:00"),
			mustWindow(t, "22:00", "06:00", "sun", "mon", "tue", "wed", "thu", "fri")), false},
		{"the night into Sunday is Saturday's", all(mustWindow(t, "06:00", "24:00"), mustWindow(t, "22:00", "06:00", "sat"),
			mustWindow(t, "00:00", "06:00", "mon", "tue", "wed", "thu", "fri", "sat")), true},
	} {
		if got := CoverWeek(c.ws); got != c.want {
			t.Errorf("%s: %t, want %t", c.name, got, c.want)
		}
		if table := tableOf(Hours{Quiet: c.ws}); slices.Contains(table[:], false) == c.want {
			t.Errorf("%s: the table of minutes disagrees with the expectation", c.name)
		}
	}
}

func wantField(t *testing.T, err error, field string) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Field != field || e.Detail == "" || !strings.HasPrefix(err.Error(), field+": ") {
		t.Errorf("error %#v, want one for %q", err, field)
	}
}
