package freqcap

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sendgate/sendgate"
)

// askedFor makes one candidate for each number of caps.
func askedFor(caps ...int) []candidate {
	asked := make([]candidate, len(caps))
	for i, n := range caps {
		ask := &sendgate.CapAsk{}
		for limit := range n {
			ask.Caps = append(ask.Caps, sendgate.BoundCap{Cap: sendgate.Cap{Window: time.Minute, Limit: limit}})
		}
		asked[i].ask = ask
	}
	return asked
}

func numbers(list ...int64) any {
	reply := make([]any, len(list))
	for i, n := range list {
		reply[i] = n
	}
	return reply
}

func TestReadReply(t *testing.T) {
	got, err := readReply(numbers(1, 3, 0, 1500, 2000, 2500, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0), askedFor(1, 2))
	if err != nil {
		t.Fatal(err)
	}
	want := []sendgate.CapAnswer{
		{Admitted: true, Caps: []sendgate.CapState{
			{Cap: sendgate.Cap{Window: time.Minute}, Used: 3, ResetsAt: time.UnixMilli(1500).UTC(), LapsesAt: time.UnixMilli(2000).UTC(), ReturnsAt: time.UnixMilli(2500).UTC()},
		}},
		{Caps: []sendgate.CapState{
			{Cap: sendgate.Cap{Window: time.Minute}, Used: 2, Full: true}, {Cap: sendgate.Cap{Window: time.Minute, Limit: 1}},
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOddRepliesAreErrors(t *testing.T) {
	for name, reply := range map[string]any{
		"nothing":              nil,
		"a string":             "OK",
		"a number":             int64(1),
		"an empty list":        []any{},
		"too short":            numbers(1, 1, 0),
		"too long":             numbers(1, 1, 0, 5, 0, 0, 1),
		"a string inside":      []any{int64(1), "1", int64(0), int64(5), int64(0), int64(0)},
		"nothing inside":       []any{int64(1), nil, int64(0), int64(5), int64(0), int64(0)},
		"a list inside":        []any{int64(1), []any{int64(1)}, int64(0), int64(5), int64(0), int64(0)},
		"a negative count":     numbers(1, -1, 0, 5, 0, 0),
		"half an admission":    numbers(2, 1, 0, 5, 0, 0),
		"half full":            numbers(0, 1, 2, 5, 0, 0),
		"admitted while full":  numbers(1, 1, 1, 5, 0, 0),
		"denied with room":     numbers(0, 1, 0, 5, 0, 0),
		"an instant too late":  numbers(1, 1, 0, latestMillis+1, 0, 0),
		"an instant too early": numbers(1, 1, 0, -1, 0, 0),
	} {
		if got, err := readReply(reply, askedFor(1)); !errors.Is(err, errReply) || got != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// FuzzReadReply builds replies of any shape, and questions of any size. Each is
// either refused or believed whole.
func FuzzReadReply(f *testing.F) {
	f.Add([]byte{0, 1, 0, 3, 0, 0, 0, 5}, uint8(1), uint8(0))
	f.Add([]byte{0, 1, 0, 3, 0, 0, 0, 5, 0, 0, 0, 1, 0, 1, 0, 0}, uint8(1), uint8(1))
	f.Add([]byte{1, 0, 2, 0, 3, 0, 4, 200, 0, 7}, uint8(2), uint8(3))
	f.Fuzz(func(t *testing.T, data []byte, first, second uint8) {
		asked := askedFor(int(first%9), int(second%9))
		got, err := readReply(replyFrom(data), asked)
		if err != nil {
			if got != nil {
				t.Fatalf("an error with answers: %v", got)
			}
			return
		}
		for i, a := range got {
			full := false
			for _, s := range a.Caps {
				full = full || s.Full
				if s.Used < 0 || s.ResetsAt.Year() > 9999 {
					t.Fatalf("believed %+v", s)
				}
			}
			if len(a.Caps) != len(asked[i].ask.Caps) || a.Admitted == full || a.Err != nil {
				t.Fatalf("believed %+v", a)
			}
		}
	})
}

// replyFrom reads pairs of a kind and a value.
func replyFrom(data []byte) any {
	list := []any{}
	for ; len(data) >= 2; data = data[2:] {
		n := int64(int8(data[1]))
		switch data[0] % 8 {
		case 1:
			list = append(list, "1")
		case 2:
			list = append(list, nil)
		case 3:
			list = append(list, []any{n})
		case 4:
			return n
		case 5:
			list = append(list, float64(n))
		case 6:
			list = append(list, n<<55)
		default:
			list = append(list, n)
		}
	}
	return list
}
