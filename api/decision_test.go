package api

import (
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"pgregory.net/rapid"

	"github.com/sendgate/sendgate"
)

// decisionForm and capForm are the form of a decision, as the encoder writes it.
type decisionForm struct {
	NotificationID string    `json:"notification_id"`
	UserID         string    `json:"user_id"`
	Verdict        string    `json:"verdict"`
	Reason         string    `json:"reason"`
	Step           string    `json:"step"`
	Category       string    `json:"category"`
	Exact          bool      `json:"exact"`
	Degraded       bool      `json:"degraded"`
	DeliverAt      instant   `json:"deliver_at,omitzero"`
	RetryAt        instant   `json:"retry_at,omitzero"`
	Caps           []capForm `json:"caps,omitempty"`
}

type capForm struct {
	Kind     string           `json:"kind,omitzero"`
	Subject  string           `json:"subject,omitzero"`
	By       []sendgate.Field `json:"by"`
	Window   string           `json:"window"`
	Limit    int              `json:"limit"`
	Kept     int              `json:"kept,omitzero"`
	KeptFor  string           `json:"kept_for,omitzero"`
	Used     int              `json:"used"`
	ResetsAt instant          `json:"resets_at,omitzero"`
}

// formOf fills the form in. Instants are of whole milliseconds.
func formOf(d *sendgate.Decision) decisionForm {
	form := decisionForm{
		NotificationID: d.NotificationID, UserID: string(d.User), Verdict: d.Verdict.String(), Reason: d.Reason.String(), Step: d.Step.String(),
		Category: d.Category, Exact: d.Exact, Degraded: d.Degraded, DeliverAt: instantOf(d.DeliverAt), RetryAt: instantOf(d.RetryAt),
	}
	for _, s := range d.Caps {
		c := capForm{
			Subject: string(s.Cap.Subject), By: s.Cap.By, Window: s.Cap.Span(), Limit: s.Cap.Limit, Kept: s.Cap.Kept, Used: s.Used, ResetsAt: instantOf(s.ResetsAt),
		}
		if s.Cap.Kind != sendgate.CapRolling {
			c.Kind = s.Cap.Kind.String()
		}
		if s.Cap.Kept > 0 {
			c.KeptFor = s.Cap.KeptFor.String()
		}
		form.Caps = append(form.Caps, c)
	}
	return form
}

// What is written by hand is what the encoder would write.
func TestDecisionsAreWrittenAsTheEncoderWould(t *testing.T) {
	at := rapid.Custom(func(t *rapid.T) time.Time {
		if millis := rapid.Int64Range(0, 4e12).Draw(t, "millis"); millis > 0 {
			return time.UnixMilli(millis)
		}
		return time.Time{}
	})
	capStates := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) sendgate.CapState {
		return sendgate.CapState{
			Cap: sendgate.Cap{
				Kind:    sendgate.CapKind(rapid.IntRange(0, int(sendgate.CapCalendar)).Draw(t, "kind")),
				Subject: rapid.SampledFrom([]sendgate.Field{"", "household_id", "attributes.a"}).Draw(t, "subject"),
				By:      rapid.SliceOfN(rapid.SampledFrom([]sendgate.Field{"topic", "channel"}), 0, 2).Draw(t, "by"),
				Window:  time.Duration(rapid.IntRange(1, 1e6).Draw(t, "seconds")) * time.Second,
				Limit:   rapid.IntRange(0, 100).Draw(t, "limit"), Kept: rapid.IntRange(0, 2).Draw(t, "kept"), KeptFor: sendgate.PriorityHigh,
			},
			Used: rapid.IntRange(0, 200).Draw(t, "used"), ResetsAt: at.Draw(t, "resets"),
		}
	}), 0, 3)
	rapid.Check(t, func(t *rapid.T) {
		d := sendgate.Decision{
			NotificationID: rapid.String().Draw(t, "id"), User: sendgate.UserID(rapid.String().Draw(t, "user")),
			Verdict:  sendgate.Verdict(rapid.IntRange(0, int(sendgate.Defer)).Draw(t, "verdict")),
			Reason:   sendgate.Reason(rapid.IntRange(0, int(sendgate.ReasonNotTaken)).Draw(t, "reason")),
			Step:     rapid.SampledFrom(sendgate.Steps()).Draw(t, "step"),
			Category: "marketing", Exact: rapid.Bool().Draw(t, "exact"), Degraded: rapid.Bool().Draw(t, "degraded"),
			DeliverAt: at.Draw(t, "deliver"), RetryAt: at.Draw(t, "retry"), Caps: capStates.Draw(t, "caps"),
		}
		want, err := json.Marshal(formOf(&d), encodeOptions)
		if err != nil {
			t.Fatal(err)
		}
		if got := appendDecision(nil, &d); string(got) != string(want) {
			t.Fatalf("%s\nwant\n%s", got, want)
		}
	})
	for _, err := range []error{
		sendgate.Errorf(sendgate.CodeUnknownTopic, "topic", "%s", "no \"\xff\""), sendgate.Errorf(sendgate.CodeMissingField, "", ""),
	} {
		want, failed := json.Marshal(itemError{faultsOf(err)[0]}, encodeOptions)
		if got := appendItemError(nil, err); failed != nil || string(got) != string(want) {
			t.Errorf("%s, want %s (%v)", got, want, failed)
		}
	}
}
