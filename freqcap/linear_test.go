package freqcap_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/freqcap"
	"github.com/sendgate/sendgate/internal/redistest"
)

// What an id can be in the model of one cap.
const (
	idFree = iota // nothing is known of it
	idTaken
	idDelivered
	idGivenBack
)

const (
	linearIDs   = 6
	linearLimit = 3
)

// linearState is what became of each id.
type linearState [linearIDs]byte

func (s linearState) used() (n int) {
	for _, is := range s {
		if is == idTaken || is == idDelivered {
			n++
		}
	}
	return n
}

// linearCall is one call: to ask for an id, or to report on it.
type linearCall struct {
	what string // `ask`, or a fate
	id   int
}

// step is what one call at a time leads to.
func (s linearState) step(c linearCall) (linearState, string) {
	used, is := s.used(), s[c.id]
	switch {
	case c.what == "ask" && (is == idTaken || is == idDelivered):
		return s, fmt.Sprint(true, used)
	case c.what == "ask" && used >= linearLimit:
		return s, fmt.Sprint(false, used)
	case c.what == "ask":
		s[c.id] = idTaken
		return s, fmt.Sprint(true, used+1)
	case is == idFree:
		return s, "unknown 0"
	case c.what == "failed" && is == idTaken:
		s[c.id] = idGivenBack
		return s, "given_back 0"
	case c.what == "delivered" && is == idTaken:
		s[c.id] = idDelivered
		return s, "settled 0"
	case c.what == "delivered" && is == idGivenBack:
		s[c.id] = idDelivered
		over := 0
		if used >= linearLimit {
			over = 1
		}
		return s, fmt.Sprint("settled ", over)
	default:
		return s, "unchanged 0"
	}
}

// TestOneCapIsLinearizable has many callers ask for and report on a few ids at
// several gates at once. There is an order of the calls, within which each had its
// effect between its beginning and its end, in which every answer is right.
func TestOneCapIsLinearizable(t *testing.T) {
	t.Parallel()
	server, space, limit := redistest.Start(t), newSpace(t), capOf(time.Hour, linearLimit)
	gates := make([]*freqcap.Limiter, 4)
	for i := range gates {
		gates[i] = freqcap.New(server.Client(), space, newGuard())
	}
	const callers, each, rounds = 8, 12, 20
	for round := range rounds {
		user := sendgate.UserID(fmt.Sprint("u", round))
		var mu sync.Mutex
		var history []porcupine.Operation
		var all sync.WaitGroup
		began := time.Now()
		for caller := range callers {
			all.Go(func() {
				for range each {
					c := linearCall{[]string{"ask", "ask", "failed", "delivered"}[rand.IntN(4)], rand.IntN(linearIDs)}
					from := time.Since(began)
					answer := c.ask(gates[caller%len(gates)], user, limit)
					op := porcupine.Operation{ClientId: caller, Input: c, Output: answer, Call: from.Nanoseconds(), Return: time.Since(began).Nanoseconds()}
					mu.Lock()
					history = append(history, op)
					mu.Unlock()
				}
			})
		}
		all.Wait()
		model := porcupine.Model{
			Init: func() any { return linearState{} },
			Step: func(state, input, output any) (bool, any) {
				next, answer := state.(linearState).step(input.(linearCall))
				return answer == output, next
			},
		}
		if result, _ := porcupine.CheckOperationsVerbose(model, history, time.Minute); result != porcupine.Ok {
			t.Fatalf("round %d: %s: %+v", round, result, history)
		}
	}
}

func (c linearCall) ask(l *freqcap.Limiter, user sendgate.UserID, limit sendgate.BoundCap) string {
	id := fmt.Sprint("n", c.id)
	if c.what == "ask" {
		a := l.Judge(context.Background(), []sendgate.CapAsk{ask(user, id, "push", limit)}, 0)[0]
		if a.Err != nil {
			return a.Err.Error()
		}
		return fmt.Sprint(a.Admitted, a.Caps[0].Used)
	}
	fate, _ := sendgate.ParseFate(c.what)
	r := l.Settle(context.Background(), []sendgate.CapReport{{User: user, NotificationID: id, Channel: "push", Fate: fate}})[0]
	if r.Err != nil {
		return r.Err.Error()
	}
	return fmt.Sprint(r.Status, " ", r.Over)
}
