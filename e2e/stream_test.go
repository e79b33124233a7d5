package e2e_test

import (
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sendgate/sendgate/internal/oracle"
)

const (
	usualAskers = 4   // who talk to gates at once
	batchMost   = 100 // checks of one request
)

// stream sends checks to gates, in turns, some alone and most in batches, and
// holds every answer against the oracle. Everything about one user goes the
// same way, one after the other, so that the order of charges is known.
type stream struct {
	world   *world
	gates   []*gate
	reserve bool
	askers  int
	// forgives tells whether an answer that is not the oracle's is one that may
	// be; nil forgives nothing. What is forgiven is counted.
	forgives func(c oracle.Check, got decision, want oracle.Decision) bool

	mu        sync.Mutex
	asked     int
	seen      map[string]int // by verdict, reason, and exactness
	wrong     []string       // the first few
	wrongs    int
	forgiven  int
	again     int           // requests that were repeated
	discarded int           // answers to them that were by the filter alone
	longest   time.Duration // that a request took
}

func (w *world) stream(gates []*gate, reserve bool) *stream {
	return &stream{world: w, gates: gates, reserve: reserve, askers: usualAskers, seen: map[string]int{}}
}

var lanes = maphash.MakeSeed()

// send sends checks and waits for the answers. Sent again, they are a
// continuation of the same stream.
func (s *stream) send(checks []oracle.Check) {
	queues := make([][]oracle.Check, s.askers)
	for _, c := range checks {
		lane := maphash.String(lanes, c.User) % uint64(s.askers)
		queues[lane] = append(queues[lane], c)
	}
	var all sync.WaitGroup
	for lane, queue := range queues {
		all.Go(func() {
			turn := lane
			for unit := range slices.Chunk(queue, batchMost) {
				size := batchMost
				if turn%10 == 9 {
					size = 1 // every tenth hundred goes as a hundred requests
				}
				for part := range slices.Chunk(unit, size) {
					s.request(s.gates[turn%len(s.gates)], part)
				}
				turn++
			}
		})
	}
	all.Wait()
}

// repeat sends checks over and over until stop is called, which waits for the
// last answers. Called again it does nothing.
func (s *stream) repeat(checks []oracle.Check) (stop func()) {
	stopped := make(chan struct{})
	var sending sync.WaitGroup
	sending.Go(func() {
		for {
			for some := range slices.Chunk(checks, 4*batchMost) {
				select {
				case <-stopped:
					return
				default:
					s.send(some)
				}
			}
		}
	})
	return sync.OnceFunc(func() {
		close(stopped)
		sending.Wait()
	})
}

// request asks a gate and the oracle the same.
func (s *stream) request(g *gate, checks []oracle.Check) {
	sent := time.Now()
	want := s.world.judge(checks, sent, s.reserve)
	got, err := g.ask(checks, s.reserve)
	for !s.reserve && err == nil && slices.ContainsFunc(got, unverified) && time.Since(sent) < patience {
		// To a gate, a store that a busy machine does not let answer in time
		// is down. Who only looks may ask again.
		s.discard(got)
		got, err = g.ask(checks, s.reserve)
	}
	took := time.Since(sent)
	slack := s.world.slack(took)

	s.mu.Lock()
	defer s.mu.Unlock()
	s.longest = max(s.longest, took)
	s.asked += len(checks)
	if err != nil {
		s.note(fmt.Sprintf("%d checks were not answered: %v", len(checks), err))
		return
	}
	for i, c := range checks {
		s.compare(c, got[i], want[i], slack)
	}
}

func unverified(d decision) bool { return d.Degraded }

// discard counts answers that are not compared, because they are asked for again.
func (s *stream) discard(answers []decision) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.again++
	for _, d := range answers {
		if !d.Exact {
			s.discarded++
		}
	}
}

func (w *world) judge(checks []oracle.Check, at time.Time, reserve bool) []oracle.Decision {
	w.mu.Lock()
	defer w.mu.Unlock()
	decisions := make([]oracle.Decision, len(checks))
	for i, c := range checks {
		decisions[i] = w.oracle.Judge(c, at, at, reserve)
	}
	return decisions
}

// inexactly marks what was seen that only the filter has said.
const inexactly = " by the filter alone"

func (s *stream) compare(c oracle.Check, got decision, want oracle.Decision, slack time.Duration) {
	how := ""
	if !got.Exact {
		how = inexactly
	}
	s.seen[got.Verdict+" "+got.Reason+how]++
	wrong := fault(c, got, want, slack)
	switch {
	case wrong == "":
	case s.forgives != nil && s.forgives(c, got, want):
		s.forgiven++
	default:
		s.note(fmt.Sprintf("%s: %+v\n  got  %+v\n  want %+v", wrong, c, got, want))
	}
}

func (s *stream) note(wrong string) {
	s.wrongs++
	if len(s.wrong) < 5 {
		s.wrong = append(s.wrong, wrong)
	}
}

// slack is how far an instant of Redis' may be from the oracle's: both are in
// the time that the request took which charged the cap, and that may have been
// any so far. A few milliseconds are for rounding.
func (w *world) slack(took time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.slowest = max(w.slowest, took)
	return w.slowest + 5*time.Millisecond
}

// fault tells what is wrong with a decision, or nothing.
func fault(c oracle.Check, got decision, want oracle.Decision, slack time.Duration) string {
	switch {
	case got.Error != nil:
		return fmt.Sprintf("it was refused: %v", got.Error)
	case got.NotificationID != c.NotificationID || got.User != c.User:
		return "it is of another check"
	case got.Verdict != want.Verdict || got.Reason != want.Reason || got.Category != want.Category:
		return "verdict, reason or category"
	case !slices.Contains(want.Steps, got.Step):
		return "step"
	case got.Degraded:
		return "everything is up, and it is degraded"
	case !got.Exact && !mayBeInexact(got):
		return "only a rejection by the filter may be other than exact"
	case !near(got.DeliverAt, want.DeliverAt, slack) || !near(got.RetryAt, want.RetryAt, slack):
		return "deliver_at or retry_at"
	}
	return ""
}

// mayBeInexact tells whether a decision is one that a category with
// `filter_hit: reject` may take from the filter alone.
func mayBeInexact(d decision) bool {
	return d.Verdict == "suppress" && (d.Step == "global" || d.Step == "filter") &&
		catalog().Categories[d.Category].Class == "marketing"
}

func near(a, b time.Time, slack time.Duration) bool {
	if a.IsZero() || b.IsZero() {
		return a.IsZero() && b.IsZero()
	}
	return a.Sub(b).Abs() <= slack
}

// end says what the stream has seen, and fails the test if any of it was wrong.
func (s *stream) end(t *testing.T, name string) {
	t.Helper()
	t.Logf("%s: %d checks, %d wrong, %d forgiven; slowest request %s, %d asked again", name, s.asked, s.wrongs, s.forgiven, s.longest.Round(time.Millisecond), s.again)
	for _, what := range slices.Sorted(maps.Keys(s.seen)) {
		t.Logf("  %7d %s", s.seen[what], what)
	}
	for _, wrong := range s.wrong {
		t.Errorf("%s: %s", name, wrong)
	}
}
