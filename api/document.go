package api

import (
	"cmp"
	"slices"

	"github.com/sendgate/sendgate"
)

// document is a user's preferences as callers see them, and may send them
// back.
type document struct {
	UserID            sendgate.UserID `json:"user_id"`
	Revision          int64           `json:"revision"`
	Preferences       []settingDoc    `json:"preferences"`
	QuietHours        *quietDoc       `json:"quiet_hours,omitzero"`
	FrequencyCaps     []userCapDoc    `json:"frequency_caps"`
	GlobalUnsubscribe bool            `json:"global_unsubscribe"`
	Holds             []holdDoc       `json:"holds"`
	UpdatedAt         instant         `json:"updated_at,omitzero"`
}

type settingDoc struct {
	Topic   string `json:"topic"`
	Channel string `json:"channel"`
	Enabled bool   `json:"enabled"`
}

type quietDoc struct {
	Enabled  bool     `json:"enabled"`
	Start    string   `json:"start,omitempty"`
	End      string   `json:"end,omitempty"`
	Days     []string `json:"days,omitempty"`
	Timezone string   `json:"timezone,omitempty"`
}

type userCapDoc struct {
	Category string            `json:"category"`
	MaxCount int               `json:"max_count"`
	Window   sendgate.Duration `json:"window"`
}

type holdDoc struct {
	Source          sendgate.HoldSource `json:"source"`
	Reason          string              `json:"reason"`
	RetainEssential bool                `json:"retain_essential"`
	At              instant             `json:"at"`
}

func documentOf(user sendgate.UserID, p *sendgate.Preferences) *document {
	doc := &document{
		UserID: user, Revision: p.Revision, GlobalUnsubscribe: p.Global(), UpdatedAt: instantOf(p.UpdatedAt),
		QuietHours: quietDocOf(p.QuietHours),
	}
	for s, on := range p.Settings {
		doc.Preferences = append(doc.Preferences, settingDoc{s.Topic, s.Channel, on})
	}
	slices.SortFunc(doc.Preferences, func(a, b settingDoc) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Channel, b.Channel))
	})
	for _, c := range p.Caps {
		doc.FrequencyCaps = append(doc.FrequencyCaps, userCapDoc{c.Category, c.MaxCount, c.Window})
	}
	for _, h := range p.Holds {
		doc.Holds = append(doc.Holds, holdDoc{h.Source, h.Reason, h.RetainEssential, instantOf(h.At)})
	}
	return doc
}

func quietDocOf(q *sendgate.QuietHours) *quietDoc {
	if q == nil {
		return nil
	}
	doc := &quietDoc{Enabled: q.Enabled, Timezone: q.Timezone}
	if w := q.Window; w != nil {
		doc.Start, doc.End, doc.Days = w.Start.String(), w.End.String(), w.Days.Names()
	}
	return doc
}
