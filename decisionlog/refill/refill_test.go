package refill_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/decisionlog/refill"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errDown = errors.New("down")

// ledger counts each delivery once, and fails as often as it is told to.
type ledger struct {
	mu       sync.Mutex
	failures int
	calls    int
	most     int // reports in a call
	seen     map[string]bool
}

func (l *ledger) Settle(_ context.Context, reports []sendgate.CapReport) []sendgate.CapReceipt {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls++
	l.most = max(l.most, len(reports))
	receipts := make([]sendgate.CapReceipt, len(reports))
	for i, r := range reports {
		switch {
		case i%2 == 1 && l.failures > 0:
			receipts[i].Err = errDown
		case l.seen[r.NotificationID]:
			receipts[i].Status = sendgate.StatusUnchanged
		default:
			l.seen[r.NotificationID] = true
			receipts[i].Status = sendgate.StatusSettled
		}
	}
	l.failures--
	return receipts
}

func deliveries(n int) []sendgate.CapReport {
	list := make([]sendgate.CapReport, n)
	for i := range list {
		list[i].NotificationID = fmt.Sprint(i)
	}
	return list
}

func run(ctx context.Context, l *ledger, n int, patience time.Duration) (t refill.Totals, told, waited int, err error) {
	var mu sync.Mutex
	t, err = refill.Run(ctx, refill.Options{
		Caps: l, Patience: patience,
		Progress: func(t refill.Totals) { told = t.Sent },
		Waiting:  func(error) { mu.Lock(); waited++; mu.Unlock() },
	}, deliveries(n))
	return t, told, waited, err
}

func TestRunsUntilAllWasAnswered(t *testing.T) {
	l := &ledger{failures: 5, seen: map[string]bool{}}
	totals, told, waited, err := run(context.Background(), l, 1000, time.Minute)
	if want := (refill.Totals{Sent: 1000, Counted: 1000}); totals != want || told != 1000 || waited != 5 || err != nil || l.most > 64 {
		t.Errorf("%+v, %d were told of, %d waits, %v, %d in a call", totals, told, waited, err, l.most)
	}
	totals, _, _, err = run(context.Background(), l, 1000, time.Minute)
	if want := (refill.Totals{Sent: 1000, Known: 1000}); totals != want || err != nil {
		t.Errorf("again: %+v, %v", totals, err)
	}
	totals, _, _, err = run(context.Background(), l, 0, time.Minute)
	if totals != (refill.Totals{}) || err != nil {
		t.Errorf("nothing: %+v, %v", totals, err)
	}
}

func TestEnds(t *testing.T) {
	l := &ledger{failures: 1 << 30, seen: map[string]bool{}}
	totals, _, _, err := run(context.Background(), l, 1000, time.Millisecond)
	if !errors.Is(err, errDown) || totals.Sent == 1000 {
		t.Errorf("without patience: %+v, %v", totals, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if totals, _, _, err := run(ctx, l, 1000, time.Minute); !errors.Is(err, context.Canceled) || totals.Sent == 1000 {
		t.Errorf("cancelled: %+v, %v", totals, err)
	}
}
