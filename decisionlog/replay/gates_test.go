package replay_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/catalogfile"
	"github.com/sendgate/sendgate/decisionlog"
	"github.com/sendgate/sendgate/decisionlog/replay"
	"github.com/sendgate/sendgate/freqcap"
	"github.com/sendgate/sendgate/guard"
	"github.com/sendgate/sendgate/keyspace"
	"github.com/sendgate/sendgate/redisconn"
)

// fleet is several gates over one Redis, each with a decision log.
type fleet struct {
	t     testing.TB
	space *keyspace.Space
	gates []*sendgate.Gate
	logs  []*decisionlog.Log
	paths []string
}

// everybody has chosen nothing.
type everybody struct{}

func (everybody) Consent(sendgate.UserID) (c sendgate.Consent, exact, known bool) {
	return c, false, false
}

func (everybody) Read(_ context.Context, asks []sendgate.RecordAsk) []sendgate.RecordAnswer {
	answers := make([]sendgate.RecordAnswer, len(asks))
	for i := range answers {
		answers[i].Preferences = &sendgate.Preferences{}
	}
	return answers
}

func limiter(client redis.UniversalClient, space *keyspace.Space) *freqcap.Limiter {
	return freqcap.New(client, space, guard.New(guard.Options{Name: "caps", Limit: time.Minute, InFlight: 64, Answered: redisconn.Answered}))
}

func startFleet(t testing.TB, catalog string, clients ...redis.UniversalClient) *fleet {
	t.Helper()
	parsed, err := catalogfile.Parse("catalog.yaml", []byte(catalog))
	if err != nil {
		t.Fatal(err)
	}
	f := &fleet{t: t}
	if f.space, err = keyspace.New("t", 8); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for i, client := range clients {
		path := filepath.Join(dir, "gate"+strconv.Itoa(i))
		l, err := decisionlog.Open(decisionlog.Options{Path: path, Log: slog.New(slog.DiscardHandler), Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		f.gates = append(f.gates, sendgate.NewGate(sendgate.Options{
			Catalog: parsed, Overlay: everybody{}, Records: everybody{}, Caps: limiter(client, f.space), Observer: l,
		}))
		f.logs, f.paths = append(f.logs, l), append(f.paths, path)
	}
	return f
}

// replay closes the logs and replays them.
func (f *fleet) replay(o replay.Options) *replay.Replay {
	f.t.Helper()
	for _, l := range f.logs {
		if err := l.Close(); err != nil || l.Dropped()+l.Failed() > 0 {
			f.t.Fatalf("%d were dropped, %d failed, %v", l.Dropped(), l.Failed(), err)
		}
	}
	r := replay.New(o)
	stats, err := decisionlog.Read(context.Background(), f.paths, decisionlog.ReadOptions{}, r.Add)
	if err == nil {
		err = r.Finish()
	}
	if err != nil || stats.Torn.Count > 0 || r.Late() > 0 {
		f.t.Fatalf("%+v, %d late, %v", stats, r.Late(), err)
	}
	return r
}

// decide asks a gate, which must not be in doubt.
func (f *fleet) decide(gate int, checks []sendgate.Check, take int) (allowed []sendgate.Check) {
	for i, r := range f.gates[gate].DecideAll(context.Background(), checks, sendgate.Reserve, take) {
		if r.Err != nil || r.Decision.Degraded {
			f.t.Errorf("%+v: %+v", checks[i], r)
		}
		if r.Err == nil && r.Decision.Verdict == sendgate.Allow {
			allowed = append(allowed, checks[i])
		}
	}
	return allowed
}

func (f *fleet) settle(gate int, check sendgate.Check, fate sendgate.Fate) {
	o := sendgate.Outcome{Check: sendgate.Check{User: check.User, NotificationID: check.NotificationID, Channel: check.Channel}, Fate: fate}
	for _, s := range f.gates[gate].Settle(context.Background(), []sendgate.Outcome{o}) {
		if s.Err != nil {
			f.t.Error(s.Err)
		}
	}
}
