package prefs_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/catalogfile"
	"github.com/sendgate/sendgate/prefs"
)

func TestUpdate(t *testing.T) {
	r := newRig(t)
	if p := r.put(t, "u", "newsletter", "email", off()); p.Revision != 1 {
		t.Fatalf("revision %d after the first change", p.Revision)
	}
	// The same again is no change: no revision, no entry in the audit log.
	if p := r.put(t, "u", "newsletter", "email", off()); p.Revision != 1 || len(r.changes(t, "u")) != 1 {
		t.Errorf("revision %d and %d changes after no change", p.Revision, len(r.changes(t, "u")))
	}
	zone := "Europe/Berlin"
	p, err := r.service.Update(t.Context(), "u", prefs.Edit{QuietHours: &prefs.QuietHoursEdit{Timezone: &zone}}, nil, prefs.Meta{Actor: "app", Reason: "moved", From: "203.0.113.7"})
	if err != nil || p.Revision != 2 || p.Settings[sendgate.Setting{Topic: "newsletter", Channel: "email"}] {
		t.Errorf("after a new zone: %+v, %v", p, err)
	}
	if p.QuietHours == nil || p.QuietHours.Enabled || p.QuietHours.Timezone != zone {
		t.Errorf("a zone alone: %+v", p.QuietHours)
	}
	// A setting leaves the others unset, and nil unsets it.
	if p := r.put(t, "u", "newsletter", "email", nil); len(p.Settings) != 0 {
		t.Errorf("settings %v", p.Settings)
	}
	var got []string
	for _, c := range r.changes(t, "u") {
		for _, d := range c.What {
			got = append(got, fmt.Sprintf("%d %s %s %s%s: %s -> %s", c.Revision, c.Actor, d.Kind, d.Topic, d.Channel, d.Before, d.After))
		}
	}
	want := []string{
		"1  preference newsletteremail:  -> false",
		`2 app quiet_hours :  -> {"enabled":false,"timezone":"Europe/Berlin"}`,
		"3  preference newsletteremail: false -> ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestIfMatch(t *testing.T) {
	r := newRig(t)
	r.put(t, "u", "newsletter", "email", off())
	stale := int64(0)
	_, err := r.service.Update(t.Context(), "u", prefs.Edit{Settings: []prefs.SettingEdit{{Topic: "newsletter", Channel: "email", Enabled: on()}}}, &stale, prefs.Meta{})
	if sendgate.CodeOf(err) != sendgate.CodeRevisionMismatch {
		t.Errorf("a stale revision: %v", err)
	}
	if p, err := r.service.Get(t.Context(), "u"); err != nil || p.Revision != 1 {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestParallelEdits(t *testing.T) {
	// 50 edits of different settings of a user without a record, through two
	// gates that share a store.
	a := newRig(t)
	b := newRigOn(t, a.client, a.store)
	var topics []string
	for i := range 50 {
		topics = append(topics, fmt.Sprintf("t%d: {category: c}", i))
	}
	catalog, err := catalogfile.Parse("t", []byte("default_timezone: UTC\nchannels: [push]\ncategories: {c: {class: marketing}}\ntopics:\n  "+strings.Join(topics, "\n  ")+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	a.catalog, b.catalog = catalog, catalog
	var wg sync.WaitGroup
	for i := range 50 {
		r := []*rig{a, b}[i%2]
		wg.Go(func() { r.put(t, "u", fmt.Sprintf("t%d", i), "push", off()) })
	}
	wg.Wait()
	p, err := a.service.Get(t.Context(), "u")
	if err != nil || p.Revision != 50 || len(p.Settings) != 50 {
		t.Errorf("revision %d with %d settings, %v", p.Revision, len(p.Settings), err)
	}
	for i, c := range a.changes(t, "u") {
		if c.Revision != int64(i+1) {
			t.Errorf("change %d has revision %d", i, c.Revision)
		}
	}
}

func TestUnsubscribeRacingAnEdit(t *testing.T) {
	r := newRig(t)
	for i := range 20 {
		user := sendgate.UserID(fmt.Sprintf("u%d", i))
		var wg sync.WaitGroup
		wg.Go(func() { r.put(t, user, "newsletter", "email", on()) })
		wg.Go(func() {
			if _, err := r.service.UnsubscribeAll(t.Context(), prefs.Unsubscribe{User: user, Reason: prefs.ReasonUserRequested}, prefs.Meta{}); err != nil {
				t.Error(err)
			}
		})
		wg.Wait()
		if p, err := r.service.Get(t.Context(), user); err != nil || !p.Global() || p.Revision != 2 {
			t.Errorf("%+v, %v", p, err)
		}
	}
}

func TestHolds(t *testing.T) {
	r := newRig(t)
	hold := func(reason string, retain *bool) prefs.Effect {
		t.Helper()
		e, err := r.service.UnsubscribeAll(t.Context(), prefs.Unsubscribe{User: "u", Reason: reason, RetainEssential: retain}, prefs.Meta{})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	lift := func(source sendgate.HoldSource) prefs.Effect {
		t.Helper()
		e, err := r.service.Resubscribe(t.Context(), prefs.Resubscribe{User: "u", Reason: "asked to", Source: source}, prefs.Meta{})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	r.put(t, "u", "newsletter", "email", off())
	hold(prefs.ReasonGDPRRequest, nil)
	if e := hold(prefs.ReasonOperatorBlock, nil); len(e.Preferences.Holds) != 2 {
		t.Errorf("holds %+v", e.Preferences.Holds)
	}
	// The operator's hold is lifted; the user's own stands, with its reason.
	if e := lift(sendgate.SourceOperator); !e.Preferences.Global() || e.Preferences.Holds[0].Reason != prefs.ReasonGDPRRequest {
		t.Errorf("holds %+v", e.Preferences.Holds)
	}
	if p := r.put(t, "u", "newsletter", "email", on()); !p.Global() {
		t.Error("an edit of a setting lifted a hold")
	}
	// A hard hold is not softened by a soft one, only by being lifted.
	hold(prefs.ReasonAccountDeletion, nil)
	if e := hold(prefs.ReasonUserRequested, nil); !e.Preferences.Hard() || e.Preferences.Holds[0].Reason != prefs.ReasonAccountDeletion {
		t.Errorf("holds %+v", e.Preferences.Holds)
	}
	before, err := r.service.Get(t.Context(), "u")
	if err != nil {
		t.Fatal(err)
	}
	e := lift(sendgate.SourceUser)
	if e.Preferences.Global() || !e.Preferences.Settings[sendgate.Setting{Topic: "newsletter", Channel: "email"}] {
		t.Errorf("after the last hold was lifted: %+v", e.Preferences)
	}
	if again := lift(sendgate.SourceUser); again.Preferences.Revision != before.Revision+1 {
		t.Errorf("lifting nothing led to revision %d", again.Preferences.Revision)
	}
}

func TestHoldsAreValidated(t *testing.T) {
	r := newRig(t)
	for _, c := range []struct {
		u    prefs.Unsubscribe
		code sendgate.Code
	}{
		{prefs.Unsubscribe{User: "u", Reason: "because"}, sendgate.CodeInvalidReason},
		{prefs.Unsubscribe{User: "u"}, sendgate.CodeInvalidReason},
		{prefs.Unsubscribe{User: "", Reason: prefs.ReasonGDPRRequest}, sendgate.CodeInvalidUserID},
		{prefs.Unsubscribe{User: "u", Reason: prefs.ReasonGDPRRequest, Source: "nobody"}, sendgate.CodeInvalidSource},
		{prefs.Unsubscribe{User: "u", Reason: prefs.ReasonOperatorBlock, Source: sendgate.SourceUser}, sendgate.CodeInvalidSource},
	} {
		if _, err := r.service.UnsubscribeAll(t.Context(), c.u, prefs.Meta{}); sendgate.CodeOf(err) != c.code {
			t.Errorf("%+v: %v, not %s", c.u, err, c.code)
		}
	}
	if p, err := r.service.Get(t.Context(), "u"); err != nil || p.Revision != 0 {
		t.Errorf("something was written: %+v, %v", p, err)
	}
}

func TestEssential(t *testing.T) {
	r := newRig(t)
	_, err := r.service.Update(t.Context(), "u", prefs.Edit{Settings: []prefs.SettingEdit{{Topic: "security_alerts", Channel: "email", Enabled: off()}}}, nil, prefs.Meta{})
	var e *sendgate.Error
	if !errors.As(err, &e) || e.Code != sendgate.CodeEssentialTopic || !strings.Contains(e.Detail, "security_alerts") {
		t.Errorf("switching off an essential topic: %v", err)
	}
	// What was stored before the category became essential may be sent back.
	r.put(t, "u", "newsletter", "email", off())
	text := strings.Replace(string(catalogfile.SampleYAML()), "marketing:\n    class: marketing\n    caps:\n      - {kind: rolling, by: [category], window: 24h, limit: 5}\n      - {kind: rolling, by: [campaign_id], window: 24h, limit: 2}   # of checks that name a campaign\n    user_caps: {ceiling: 20}   # users may set caps of their own, up to this\n", "marketing: {class: essential}\n", 1)
	text = strings.ReplaceAll(text, ", channels: {sms: off}", "")
	if r.catalog, err = catalogfile.Parse("t", []byte(text)); err != nil {
		t.Fatal(err)
	}
	if p := r.put(t, "u", "newsletter", "email", off()); p.Revision != 1 {
		t.Errorf("revision %d", p.Revision)
	}
}

func TestLostAnswer(t *testing.T) {
	// The store has written, and its answer is lost; or answers with a conflict
	// because the write was tried again on the way.
	for name, lost := range map[string]error{"lost": errors.New("connection reset"), "conflict": prefs.ErrConflict} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			left := 1
			r.store.set(func(s *faultyStore) {
				s.afterPut = func(_ *prefs.Record, err error) error {
					if left--; left >= 0 && err == nil {
						return lost
					}
					return err
				}
			})
			p := r.put(t, "u", "newsletter", "email", off())
			if p.Revision != 1 || len(r.changes(t, "u")) != 1 {
				t.Errorf("revision %d, %d changes", p.Revision, len(r.changes(t, "u")))
			}
		})
	}
}

func TestLostAnswerBehindAnotherEdit(t *testing.T) {
	// The answer is lost, and somebody else edits before the record is read again.
	r := newRig(t)
	other := newRigOn(t, r.client, &faultyStore{Store: r.store.Store})
	first := true
	r.store.set(func(s *faultyStore) {
		s.afterPut = func(_ *prefs.Record, err error) error {
			if first {
				first = false
				other.put(t, "u", "promotions", "push", off())
				return errors.New("timeout")
			}
			return err
		}
	})
	p := r.put(t, "u", "newsletter", "email", off())
	if p.Revision != 2 || len(p.Settings) != 2 || len(r.changes(t, "u")) != 2 {
		t.Errorf("%+v, %d changes", p, len(r.changes(t, "u")))
	}
}

func TestStoreUnavailable(t *testing.T) {
	r := newRig(t)
	r.store.set(func(s *faultyStore) {
		s.beforePut = func(*prefs.Record) error { return errors.New("unreachable") }
	})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := r.service.Update(ctx, "u", prefs.Edit{Settings: []prefs.SettingEdit{{Topic: "newsletter", Channel: "email", Enabled: off()}}}, nil, prefs.Meta{})
	if sendgate.CodeOf(err) != sendgate.CodeStoreUnavailable {
		t.Errorf("%v", err)
	}
	if _, _, known := r.overlay.Consent("u"); known {
		t.Error("what is not durable is obeyed")
	}
}

func TestRecordTooLarge(t *testing.T) {
	r := newRig(t)
	full := &prefs.Record{User: "u", Preferences: sendgate.Preferences{Revision: 1, Settings: sendgate.Settings{}}}
	data := []byte{}
	for i := 0; len(data) < prefs.MaxRecordBytes-200; {
		for range max(1, (prefs.MaxRecordBytes-len(data))/100) { // each takes less than 100 bytes
			full.Settings[sendgate.Setting{Topic: fmt.Sprintf("topic_with_a_name_of_forty_bytes_%d", i), Channel: "push"}] = true
			i++
		}
		var err error
		if data, err = prefs.EncodeRecord(full); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.store.Put(t.Context(), full, 0); err != nil {
		t.Fatal(err)
	}
	_, err := r.service.Update(t.Context(), "u", prefs.Edit{Settings: []prefs.SettingEdit{{Topic: "newsletter", Channel: "email", Enabled: off()}}}, nil, prefs.Meta{})
	if sendgate.CodeOf(err) != sendgate.CodeRecordTooLarge {
		t.Errorf("%v", err)
	}
	if p, err := r.service.Get(t.Context(), "u"); err != nil || p.Revision != 1 {
		t.Errorf("%+v, %v", p, err)
	}
}
