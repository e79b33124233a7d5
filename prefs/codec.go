package prefs

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/quiet"
)

// codecVersion is the first byte of everything encoded here, so that the form
// can change while old records are still about.
const codecVersion = '1'

// MaxRecordBytes is the longest encoded record that is stored: an item of
// DynamoDB holds 400 KB, names and index members included.
const MaxRecordBytes = 380 << 10

// EncodePreferences writes preferences without what is pending: the body of a
// cached record.
func EncodePreferences(p *sendgate.Preferences) ([]byte, error) {
	return encode(wirePreferencesOf(p))
}

// DecodePreferences reads what EncodePreferences wrote.
func DecodePreferences(data []byte) (*sendgate.Preferences, error) {
	var w wirePreferences
	if err := decode(data, &w); err != nil {
		return nil, err
	}
	return w.preferences()
}

// EncodeRecord writes a record, its user included.
func EncodeRecord(r *Record) ([]byte, error) {
	return encode(wireRecord{User: r.User, wirePreferences: wirePreferencesOf(&r.Preferences), Pending: wireChangesOf(r.Pending)})
}

// DecodeRecord reads what EncodeRecord wrote.
func DecodeRecord(data []byte) (*Record, error) {
	var w wireRecord
	if err := decode(data, &w); err != nil {
		return nil, err
	}
	p, err := w.preferences()
	if err != nil {
		return nil, err
	}
	r := &Record{User: w.User, Preferences: *p}
	for _, c := range w.Pending {
		r.Pending = append(r.Pending, c.change())
	}
	return r, nil
}

// EncodeChange writes a change.
func EncodeChange(c Change) ([]byte, error) { return encode(wireChangeOf(c)) }

// DecodeChange reads what EncodeChange wrote.
func DecodeChange(data []byte) (Change, error) {
	var w wireChange
	err := decode(data, &w)
	return w.change(), err
}

func encode(v any) ([]byte, error) {
	data, err := jsonv2.Marshal(v, jsonv2.Deterministic(true))
	if err != nil {
		return nil, err
	}
	return slices.Insert(data, 0, codecVersion), nil
}

func decode(data []byte, into any) error {
	if len(data) == 0 || data[0] != codecVersion {
		return fmt.Errorf("a record in a form that is not known here (%d bytes)", len(data))
	}
	return jsonv2.Unmarshal(data[1:], into)
}

type wirePreferences struct {
	Revision int64                      `json:"rev"`
	Settings map[string]map[string]bool `json:"set,omitzero"` // by topic and channel
	Quiet    *wireQuiet                 `json:"quiet,omitzero"`
	Caps     []wireCap                  `json:"caps,omitzero"`
	Holds    []wireHold                 `json:"holds,omitzero"`
	Updated  int64                      `json:"at,omitzero"` // Unix milliseconds
}

type wireQuiet struct {
	Enabled bool   `json:"on,omitzero"`
	Window  bool   `json:"win,omitzero"`
	Start   int16  `json:"from,omitzero"` // minutes
	End     int16  `json:"to,omitzero"`
	Days    uint8  `json:"days,omitzero"`
	Zone    string `json:"tz,omitzero"`
}

type wireCap struct {
	Category string `json:"cat"`
	Seconds  int64  `json:"win"`
	Max      int    `json:"max"`
}

type wireHold struct {
	Source sendgate.HoldSource `json:"src"`
	Reason string              `json:"why"`
	Hard   bool                `json:"hard,omitzero"`
	At     int64               `json:"at"`
}

type wireRecord struct {
	User sendgate.UserID `json:"user"`
	wirePreferences
	Pending []wireChange `json:"pending,omitzero"`
}

type wireChange struct {
	ID       string `json:"id"`
	Revision int64  `json:"rev"`
	At       int64  `json:"at"`
	Actor    string `json:"actor,omitzero"`
	Reason   string `json:"reason,omitzero"`
	From     string `json:"from,omitzero"`
	What     []Diff `json:"what,omitzero"`
}

func wirePreferencesOf(p *sendgate.Preferences) wirePreferences {
	w := wirePreferences{Revision: p.Revision, Updated: millis(p.UpdatedAt)}
	for s, on := range p.Settings {
		if w.Settings == nil {
			w.Settings = map[string]map[string]bool{}
		}
		if w.Settings[s.Topic] == nil {
			w.Settings[s.Topic] = map[string]bool{}
		}
		w.Settings[s.Topic][s.Channel] = on
	}
	if q := p.QuietHours; q != nil {
		w.Quiet = &wireQuiet{Enabled: q.Enabled, Zone: q.Timezone}
		if q.Window != nil {
			w.Quiet.Window = true
			w.Quiet.Start, w.Quiet.End, w.Quiet.Days = int16(q.Window.Start), int16(q.Window.End), uint8(q.Window.Days)
		}
	}
	for _, c := range p.Caps {
		w.Caps = append(w.Caps, wireCap{c.Category, int64(time.Duration(c.Window) / time.Second), c.MaxCount})
	}
	for _, h := range p.Holds {
		w.Holds = append(w.Holds, wireHold{h.Source, h.Reason, !h.RetainEssential, millis(h.At)})
	}
	return w
}

func (w *wirePreferences) preferences() (*sendgate.Preferences, error) {
	p := &sendgate.Preferences{Revision: w.Revision, UpdatedAt: fromMillis(w.Updated)}
	for topic, channels := range w.Settings {
		for channel, on := range channels {
			if p.Settings == nil {
				p.Settings = sendgate.Settings{}
			}
			p.Settings[sendgate.Setting{Topic: topic, Channel: channel}] = on
		}
	}
	if q := w.Quiet; q != nil {
		p.QuietHours = &sendgate.QuietHours{Enabled: q.Enabled, Timezone: q.Zone}
		if q.Window {
			win := quiet.Window{Start: quiet.TimeOfDay(q.Start), End: quiet.TimeOfDay(q.End), Days: quiet.Days(q.Days)}
			if err := win.Validate(); err != nil {
				return nil, fmt.Errorf("stored quiet hours: %w", err)
			}
			p.QuietHours.Window = &win
		}
	}
	for _, c := range w.Caps {
		if c.Seconds < 0 || c.Seconds > math.MaxInt64/int64(time.Second) {
			return nil, fmt.Errorf("a stored cap has a window of %d seconds", c.Seconds)
		}
		p.Caps = append(p.Caps, sendgate.UserCap{Category: c.Category, Window: sendgate.Duration(time.Duration(c.Seconds) * time.Second), MaxCount: c.Max})
	}
	for _, h := range w.Holds {
		p.Holds = append(p.Holds, sendgate.Hold{Source: h.Source, Reason: h.Reason, RetainEssential: !h.Hard, At: fromMillis(h.At)})
	}
	return p, nil
}

func wireChangeOf(c Change) wireChange {
	return wireChange{c.ID, c.Revision, millis(c.At), c.Actor, c.Reason, c.From, c.What}
}

func wireChangesOf(cs []Change) (ws []wireChange) {
	for _, c := range cs {
		ws = append(ws, wireChangeOf(c))
	}
	return ws
}

func (w wireChange) change() Change {
	return Change{ID: w.ID, Revision: w.Revision, At: fromMillis(w.At), Meta: Meta{w.Actor, w.Reason, w.From}, What: w.What}
}

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func fromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// jsonOf is v as JSON text, for a Diff. What is given to it always encodes.
func jsonOf(v any) json.RawMessage {
	data, err := jsonv2.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("prefs: %T does not encode: %v", v, err))
	}
	return data
}
