package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/catalogfile"
	"github.com/sendgate/sendgate/internal/dynamotest"
	"github.com/sendgate/sendgate/prefs"
)

// nowhere takes the place of what a change travels through besides the store.
type nowhere struct{}

func (nowhere) Epoch() int64 { return 0 }

func (nowhere) Known(sendgate.UserID) (int64, bool) { return -1, false }

func (nowhere) ApplySince(sendgate.Consent, int64) {}

func (nowhere) Node(context.Context, sendgate.UserID) string { return "" }

func (nowhere) Clock(context.Context, sendgate.UserID) (time.Time, error) {
	return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), nil
}

func (nowhere) Announce(_ context.Context, states []sendgate.Announcement) []error {
	return make([]error, len(states))
}

func serviceOn(t *testing.T, s *Store) (*prefs.Service, *prefs.Carrier) {
	t.Helper()
	carrier, catalog := prefs.NewCarrier(s, nowhere{}), catalogfile.Sample()
	t.Cleanup(carrier.Close)
	return prefs.NewService(prefs.ServiceOptions{
		Store: s, Carrier: carrier, Overlay: nowhere{}, Catalog: func() *sendgate.Catalog { return catalog },
		Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) },
	}), carrier
}

// first makes a fault of the first call of an action on a table.
func first(action, table string, fault func(*exchange)) func(*exchange) {
	var once sync.Once
	return func(e *exchange) {
		if e.action == action && e.ask["TableName"] == table {
			once.Do(func() { fault(e) })
		}
	}
}

// An edit is made once and logged once, wherever on its way an answer is lost.
func TestLostAnswer(t *testing.T) {
	w := on(t, dynamotest.Start(t))
	s := w.open(t)
	service, carrier := serviceOn(t, s)
	lost := func(e *exchange) { e.lose = true }
	for name, fault := range map[string]func(*exchange){
		"none":                      nil,
		"of the read":               first("GetItem", "t-records", lost),
		"of the write":              first("PutItem", "t-records", lost),
		"of the entry in the log":   first("PutItem", "t-changes", lost),
		"before the write was made": first("PutItem", "t-records", func(e *exchange) { e.lose, e.status = true, 200 }),
		"the write made, answered 500": first("PutItem", "t-records", func(e *exchange) {
			w.pass(e)
			e.refuse("InternalServerError", "")
			e.status = 500
		}),
		"the write made, answered with a conflict": first("PutItem", "t-records", func(e *exchange) {
			w.pass(e)
			e.refuse("ConditionalCheckFailedException", "The conditional request failed")
		}),
	} {
		t.Run(name, func(t *testing.T) {
			user := sendgate.UserID(strings.ReplaceAll(name, " ", "-") + "@x.io")
			w.set(fault)
			off := false
			edit := prefs.Edit{Settings: []prefs.SettingEdit{{Topic: "promotions", Channel: "email", Enabled: &off}}}
			p, err := service.Update(t.Context(), user, edit, nil, prefs.Meta{Actor: "test"})
			if err != nil || p.Revision != 1 || p.Settings[sendgate.Setting{Topic: "promotions", Channel: "email"}] {
				t.Fatalf("%+v, %v", p, err)
			}
			// What was cut off is carried on, as a sweep does; doing it again does no harm.
			for range 2 {
				readings, errs := carrier.Read(t.Context(), []sendgate.UserID{user})
				if err := errors.Join(append(errs, carrier.CarryAll(t.Context(), readings)...)...); err != nil {
					t.Fatal(err)
				}
			}
			r, err := s.Get(t.Context(), user)
			if err != nil || r.Revision != 1 || len(r.Pending) != 1 {
				t.Errorf("the record: %+v, %v", r, err)
			}
			changes, err := s.Changes(t.Context(), user, 0, 10)
			if err != nil || len(changes) != 1 || changes[0].Revision != 1 || changes[0].ID != r.Pending[0].ID {
				t.Errorf("the log: %+v, %v", changes, err)
			}
		})
	}
}

// Throttling is the error of an edit that gives up, and nothing is written. How
// often it is tried is the service's affair: each try is one call.
func TestThrottledEdit(t *testing.T) {
	w := on(t, dynamotest.Start(t))
	s := w.open(t)
	service, _ := serviceOn(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	const tries = 3
	var refused atomic.Int64
	w.set(func(e *exchange) {
		if e.action != "PutItem" {
			return
		}
		e.refuse("ProvisionedThroughputExceededException", "The level of configured provisioned throughput for the table was exceeded.")
		if refused.Add(1) == tries {
			cancel()
		}
	})
	off := false
	_, err := service.Update(ctx, "u", prefs.Edit{Settings: []prefs.SettingEdit{{Topic: "promotions", Channel: "email", Enabled: &off}}}, nil, prefs.Meta{})
	if sendgate.CodeOf(err) != sendgate.CodeStoreUnavailable {
		t.Errorf("%v, want %s", err, sendgate.CodeStoreUnavailable)
	}
	if reads, writes := w.count("GetItem"), w.count("PutItem"); reads != tries || writes != tries {
		t.Errorf("%d reads and %d writes in %d tries", reads, writes, tries)
	}
	w.set(nil)
	if r, err := s.Get(t.Context(), "u"); err != nil || r.Revision != 0 {
		t.Errorf("the record: %+v, %v", r, err)
	}
}

// Two gates that edit the same user at the same time lose no edit.
func TestTwoGates(t *testing.T) {
	server := dynamotest.Start(t)
	var all sync.WaitGroup
	for gate := range 2 {
		s := fresh(t, server)
		service, _ := serviceOn(t, s)
		for _, channel := range []string{"email", "push", "sms"} {
			for _, topic := range []string{"promotions", "order_updates"} {
				all.Go(func() {
					enabled := gate == 0
					edit := prefs.Edit{Settings: []prefs.SettingEdit{{Topic: topic, Channel: channel, Enabled: &enabled}}}
					if _, err := service.Update(t.Context(), "u", edit, nil, prefs.Meta{Actor: fmt.Sprint("gate ", gate)}); err != nil {
						t.Error(err)
					}
				})
			}
		}
	}
	all.Wait()
	s := fresh(t, server)
	r, err := s.Get(t.Context(), "u")
	if err != nil || len(r.Settings) != 6 || int(r.Revision) != len(r.Pending) || r.Revision > 12 {
		t.Fatalf("revision %d, %d settings, %d changes, %v", r.Revision, len(r.Settings), len(r.Pending), err)
	}
	changes, err := s.Changes(t.Context(), "u", 0, 100)
	if err != nil || len(changes) > len(r.Pending) {
		t.Fatalf("%d changes, %v", len(changes), err)
	}
	for i, c := range r.Pending {
		if c.Revision != int64(i)+1 {
			t.Errorf("change %d has revision %d", i, c.Revision)
		}
	}
}
