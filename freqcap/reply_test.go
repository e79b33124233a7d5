package freqcap

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sendgate/sendgate"
)

// askedFor makes one item for each number of caps.
func askedFor(caps ...int) []*item {
	asked := make([]*item, len(caps))
	for i, n := range caps {
		ask, p := &sendgate.CapAsk{}, &part{}
		for limit := range n {
			ask.Caps = append(ask.Caps, sendgate.BoundCap{Cap: sendgate.Cap{Window: time.Minute, Limit: limit}})
			p.caps, p.counters = append(p.caps, limit), append(p.counters, counter{})
		}
		asked[i] = &item{candidate: &candidate{ask: ask}, part: p}
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
	asked := askedFor(1, 2, 1)
	if err := readJudged(numbers(77, 2, 3, 2, 1500, 2000, 2500, 0, 2, 1, 0, 0, 0, 0, 2, 1, 4, 0, 2000, 0), asked); err != nil {
		t.Fatal(err)
	}
	want := []judged{
		{at: 77, flag: charged, fresh: make([]bool, 1), states: []sendgate.CapState{
			{Cap: sendgate.Cap{Window: time.Minute}, Used: 3, ResetsAt: time.UnixMilli(1500).UTC(), LapsesAt: time.UnixMilli(2000).UTC(), ReturnsAt: time.UnixMilli(2500).UTC()},
		}},
		{at: 77, fresh: make([]bool, 2), states: []sendgate.CapState{
			{Cap: sendgate.Cap{Window: time.Minute}, Used: 2, Full: true}, {Cap: sendgate.Cap{Window: time.Minute, Limit: 1}},
		}},
		{at: 77, flag: charged, fresh: []bool{true}, states: []sendgate.CapState{
			{Cap: sendgate.Cap{Window: time.Minute}, Used: 1, LapsesAt: time.UnixMilli(2000).UTC()},
		}},
	}
	if diff := cmp.Diff(want, []judged{asked[0].judged, asked[1].judged, asked[2].judged}, cmp.AllowUnexported(judged{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOddRepliesAreErrors(t *testing.T) {
	for name, reply := range map[string]any{
		"nothing":              nil,
		"a string":             "OK",
		"a number":             int64(1),
		"an empty list":        []any{},
		"no instant":           []any{"x", int64(1), int64(1), int64(0), int64(5)},
		"too short":            numbers(9, 1, 1, 0),
		"too long":             numbers(9, 1, 1, 0, 5, 1),
		"a string inside":      []any{int64(9), int64(1), "1", int64(0), int64(5)},
		"nothing inside":       []any{int64(9), int64(1), nil, int64(0), int64(5)},
		"a list inside":        []any{int64(9), int64(1), []any{int64(1)}, int64(0), int64(5)},
		"a negative count":     numbers(9, 1, -1, 0, 5),
		"an admission unknown": numbers(9, 4, 1, 0, 5),
		"a flag unknown":       numbers(9, 1, 1, 5, 5),
		"a lapse too short":    numbers(9, 1, 1, 2, 5, 6),
		"a lapse of no time":   numbers(9, 1, 1, 2, 5, 0, 7),
		"admitted while full":  numbers(9, 1, 1, 1, 5),
		"denied with room":     numbers(9, 0, 1, 0, 5),
		"an instant too late":  numbers(9, 1, 1, 0, latestMillis+1),
		"an instant too early": numbers(9, 1, 1, 0, -1),
	} {
		if err := readJudged(reply, askedFor(1)); !errors.Is(err, errReply) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, reply := range map[string]any{
		"nothing":          nil,
		"an empty list":    []any{},
		"too short":        numbers(1, 9, 0),
		"too long":         numbers(1, 9, 0, 0, 1),
		"a name too few":   numbers(1, 9, 0, 1),
		"no name":          numbers(1, 9, 0, 1, 5),
		"a status unknown": numbers(5, 9, 0, 0),
		"names without":    numbers(1, 9, 0, -1),
	} {
		if err := readSettled(reply, []*order{{}}); !errors.Is(err, errReply) {
			t.Errorf("settled, %s: %v", name, err)
		}
	}
}

// FuzzReadReply builds replies of any shape, and questions of any size. Each is
// either refused or believed whole.
func FuzzReadReply(f *testing.F) {
	f.Add([]byte{0, 9, 0, 1, 0, 3, 0, 0, 0, 5}, uint8(1), uint8(0))
	f.Add([]byte{0, 9, 0, 1, 0, 3, 0, 0, 0, 5, 0, 0, 0, 1, 0, 1, 0, 0}, uint8(1), uint8(1))
	f.Add([]byte{1, 0, 2, 0, 3, 0, 4, 200, 0, 7}, uint8(2), uint8(3))
	f.Fuzz(func(t *testing.T, data []byte, first, second uint8) {
		asked := askedFor(int(first%9), int(second%9))
		if readJudged(replyFrom(data), asked) == nil {
			for _, it := range asked {
				full := false
				for _, s := range it.judged.states {
					full = full || s.Full
					if s.Used < 0 || s.ResetsAt.Year() > 9999 {
						t.Fatalf("believed %+v", s)
					}
				}
				if len(it.judged.states) != len(it.caps) || (it.judged.flag == denied) != full {
					t.Fatalf("believed %+v", it.judged)
				}
			}
		}
		o := []*order{{}, {}}
		if readSettled(replyFrom(data), o) == nil && (o[0].done.over < 0 || o[1].done.status > 4) {
			t.Fatalf("believed %+v", o[0].done)
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
