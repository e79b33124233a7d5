package oracle_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/sendgate/sendgate/internal/oracle"
)

// stamp is how every instant is written.
const stamp = "2006-01-02T15:04:05.000Z"

var stampForm = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`)

// instant reads what is in the one form, and nothing else.
type instant struct{ time.Time }

func (i *instant) UnmarshalJSON(data []byte) error {
	var s string
	if err := json.Unmarshal(data, &s); err != nil {
		return err
	}
	if !stampForm.MatchString(s) {
		return fmt.Errorf("instant %q is not UTC with milliseconds", s)
	}
	t, err := time.Parse(stamp, s)
	i.Time = t
	return err
}

// decision is a decision as it comes over HTTP, alone or in a batch, with or
// without a trace.
type decision struct {
	NotificationID string   `json:"notification_id"`
	User           string   `json:"user_id"`
	Verdict        string   `json:"verdict"`
	Reason         string   `json:"reason"`
	Step           string   `json:"step"`
	Category       string   `json:"category"`
	Exact          *bool    `json:"exact"`
	Degraded       *bool    `json:"degraded"`
	DeliverAt      instant  `json:"deliver_at"`
	RetryAt        instant  `json:"retry_at"`
	Caps           []capUse `json:"caps"`
	Trace          []struct {
		Step    string `json:"step"`
		Finding string `json:"finding"`
		TookUS  int64  `json:"took_us"`
	} `json:"trace"`
	Error *fault `json:"error"` // in the place of an item of a batch
}

type capUse struct {
	By       []string `json:"by"`
	Window   string   `json:"window"`
	Limit    int      `json:"limit"`
	Used     int      `json:"used"`
	ResetsAt instant  `json:"resets_at"`
}

type fault struct {
	Code   string `json:"code"`
	Field  string `json:"field"`
	Detail string `json:"detail"`
}

type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	fault
	Errors []fault `json:"errors"`
}

// codes are the codes of all faults.
func (p problem) codes() (codes []string) {
	for _, f := range p.Errors {
		codes = append(codes, f.Code)
	}
	if codes == nil {
		codes = []string{p.Code}
	}
	return codes
}

type document struct {
	User        string `json:"user_id"`
	Revision    int    `json:"revision"`
	Preferences []struct {
		Topic   string `json:"topic"`
		Channel string `json:"channel"`
		Enabled bool   `json:"enabled"`
	} `json:"preferences"`
	QuietHours *struct {
		Enabled  bool     `json:"enabled"`
		Start    string   `json:"start"`
		End      string   `json:"end"`
		Days     []string `json:"days"`
		Timezone string   `json:"timezone"`
	} `json:"quiet_hours"`
	FrequencyCaps []struct {
		Category string `json:"category"`
		MaxCount int    `json:"max_count"`
		Window   string `json:"window"`
	} `json:"frequency_caps"`
	GlobalUnsubscribe bool `json:"global_unsubscribe"`
	Holds             []struct {
		Source          string  `json:"source"`
		Reason          string  `json:"reason"`
		RetainEssential bool    `json:"retain_essential"`
		At              instant `json:"at"`
	} `json:"holds"`
	UpdatedAt instant `json:"updated_at"`
}

// asOracle is the document in the oracle's words.
func (d document) asOracle() oracle.Document {
	o := oracle.Document{User: d.User, Revision: d.Revision, GlobalUnsubscribe: d.GlobalUnsubscribe, UpdatedAt: d.UpdatedAt.Time}
	for _, p := range d.Preferences {
		o.Preferences = append(o.Preferences, oracle.Preference{Topic: p.Topic, Channel: p.Channel, Enabled: p.Enabled})
	}
	for _, c := range d.FrequencyCaps {
		window, _ := oracle.Length(c.Window)
		o.Caps = append(o.Caps, oracle.UserCap{Category: c.Category, Window: window, MaxCount: c.MaxCount})
	}
	for _, h := range d.Holds {
		o.Holds = append(o.Holds, oracle.Hold{Source: h.Source, Reason: h.Reason, RetainEssential: h.RetainEssential, At: h.At.Time})
	}
	if q := d.QuietHours; q != nil {
		o.Quiet = &oracle.Quiet{Enabled: q.Enabled, Start: q.Start, End: q.End, Timezone: q.Timezone, Days: oracle.WeekOrder(q.Days)}
	}
	o.Sort()
	return o
}

type holdAnswer struct {
	User        string  `json:"user_id"`
	Global      bool    `json:"global_unsubscribe"`
	Essential   bool    `json:"essential_only"`
	EffectiveAt instant `json:"effective_at"`
	Topics      int     `json:"topics_disabled"`
	Channels    int     `json:"channels_disabled"`
}

// read decodes an answer, in which nothing may be that is not documented.
func (w *world) read(a answer, into any) {
	w.t.Helper()
	d := json.NewDecoder(bytes.NewReader(a.body))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		w.fail("the answer is not understood: %v", err)
	}
}

// editBody is an edit as it goes over HTTP.
func editBody(e oracle.Edit) map[string]any {
	body := map[string]any{}
	var settings, caps []map[string]any
	for _, p := range e.Preferences {
		settings = append(settings, with(map[string]any{"topic": p.Topic, "channel": p.Channel}, "enabled", p.Enabled))
	}
	for _, c := range e.Caps {
		caps = append(caps, with(map[string]any{"category": c.Category, "window": c.Window}, "max_count", c.MaxCount))
	}
	if settings != nil {
		body["preferences"] = settings
	}
	if caps != nil {
		body["frequency_caps"] = caps
	}
	switch q := e.Quiet; {
	case q == nil:
	case q.Remove:
		body["quiet_hours"] = nil
	default:
		members := with(map[string]any{}, "days", q.Days)
		for name, v := range map[string]*string{"start": q.Start, "end": q.End, "timezone": q.Timezone} {
			if v != nil {
				members[name] = *v
			}
		}
		if q.Enabled != nil {
			members["enabled"] = *q.Enabled
		}
		body["quiet_hours"] = members
	}
	return body
}

func with[T any](members map[string]any, name string, v oracle.Nullable[T]) map[string]any {
	switch {
	case v.Given && v.Value == nil:
		members[name] = nil
	case v.Given:
		members[name] = *v.Value
	}
	return members
}

// tell notes what happened. The arguments are formatted only if the history
// fails, so that telling costs next to nothing.
func (w *world) tell(format string, args ...any) {
	w.told = append(w.told, line{format, args})
}

type line struct {
	format string
	args   []any
}

// fail ends the world with the whole history, and how to have it again.
func (w *world) fail(format string, args ...any) {
	w.t.Helper()
	var b strings.Builder
	for _, l := range w.told {
		fmt.Fprintf(&b, l.format+"\n", l.args...)
	}
	w.t.Fatalf("history %d: %s\n%s\nRun it again with: go test ./internal/oracle -run '%s' -oracle.seed=%d",
		w.number, fmt.Sprintf(format, args...), b.String(), w.t.Name(), *seed)
}
