package api

import (
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/prefs"
)

// editBody is an edit as callers write it: any part of a document, with null
// where something is to go.
type editBody struct {
	UserID            optional[string]        `json:"user_id"`
	Revision          optional[number]        `json:"revision"`
	Preferences       optional[[]settingEdit] `json:"preferences"`
	QuietHours        member[quietEdit]       `json:"quiet_hours"`
	FrequencyCaps     optional[[]userCapEdit] `json:"frequency_caps"`
	GlobalUnsubscribe optional[bool]          `json:"global_unsubscribe"`
	Holds             optional[[]holdEdit]    `json:"holds"`
	UpdatedAt         optional[string]        `json:"updated_at"`
}

type settingEdit struct {
	Topic   member[string] `json:"topic"`
	Channel member[string] `json:"channel"`
	Enabled member[bool]   `json:"enabled"`
}

type quietEdit struct {
	Enabled  member[bool]     `json:"enabled"`
	Start    member[string]   `json:"start"`
	End      member[string]   `json:"end"`
	Days     member[[]string] `json:"days"`
	Timezone member[string]   `json:"timezone"`
}

type userCapEdit struct {
	Category member[string] `json:"category"`
	MaxCount member[number] `json:"max_count"`
	Window   member[string] `json:"window"`
}

type holdEdit struct {
	Source          optional[sendgate.HoldSource] `json:"source"`
	Reason          optional[string]              `json:"reason"`
	RetainEssential optional[bool]                `json:"retain_essential"`
	At              optional[string]              `json:"at"`
}

// number is a JSON number as it was written.
type number string

// UnmarshalJSONFrom reads any number, of any size.
func (n *number) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	kind := d.PeekKind()
	value, err := d.ReadValue()
	if err != nil {
		return err
	}
	if kind != '0' {
		return errNoNumber
	}
	*n = number(value)
	return nil
}

// parseEdit reads an edit of a user's preferences.
func parseEdit(data []byte, user sendgate.UserID) (prefs.Edit, error) {
	var b editBody
	if err := decode(data, &b); err != nil {
		return prefs.Edit{}, err
	}
	var errs sendgate.Errors
	if b.UserID.value != nil && sendgate.UserID(*b.UserID.value) != user {
		errs.Add(sendgate.Errorf(sendgate.CodeReadOnlyField, "user_id", "is not the user of the path"))
	}
	e := prefs.Edit{GlobalUnsubscribe: b.GlobalUnsubscribe.value, Holds: b.holds()}
	for i, p := range b.Preferences.or(nil) {
		e.Settings = append(e.Settings, p.edit(fmt.Sprintf("preferences[%d]", i), &errs))
	}
	if b.QuietHours.given {
		e.QuietHours = b.QuietHours.value.edit(b.QuietHours.null, &errs)
	}
	for i, c := range b.FrequencyCaps.or(nil) {
		e.Caps = append(e.Caps, c.edit(fmt.Sprintf("frequency_caps[%d]", i), &errs))
	}
	return e, errs.Err()
}

// holds are handed on as they were sent. One that lacks something, or whose
// instant cannot be read, is none that is stored, and is refused as such.
func (b *editBody) holds() *[]sendgate.Hold {
	if b.Holds.value == nil {
		return nil
	}
	holds := make([]sendgate.Hold, 0, len(*b.Holds.value))
	for _, h := range *b.Holds.value {
		at, _ := parseInstant(h.At.or(""), "")
		holds = append(holds, sendgate.Hold{
			Source: h.Source.or(""), Reason: h.Reason.or(""), RetainEssential: h.RetainEssential.or(false), At: at,
		})
	}
	return &holds
}

// edit: null unsets. What does not say whether it is on or off or unset says
// nothing, and is refused rather than guessed.
func (p *settingEdit) edit(path string, errs *sendgate.Errors) prefs.SettingEdit {
	e := prefs.SettingEdit{
		Topic: p.Topic.require(path+".topic", errs), Channel: p.Channel.require(path+".channel", errs),
	}
	switch {
	case !p.Enabled.given:
		errs.Add(missing(path + ".enabled"))
	case !p.Enabled.null:
		e.Enabled = &p.Enabled.value
	}
	return e
}

// edit: null takes all quiet hours away, and null for the days means every
// day. Nothing else can be null.
func (q *quietEdit) edit(null bool, errs *sendgate.Errors) *prefs.QuietHoursEdit {
	if null {
		return &prefs.QuietHoursEdit{Remove: true}
	}
	e := &prefs.QuietHoursEdit{
		Enabled:  notNull(&q.Enabled, "quiet_hours.enabled", errs),
		Start:    notNull(&q.Start, "quiet_hours.start", errs),
		End:      notNull(&q.End, "quiet_hours.end", errs),
		Timezone: notNull(&q.Timezone, "quiet_hours.timezone", errs),
	}
	if q.Days.given {
		e.Days = &q.Days.value
	}
	return e
}

func notNull[T any](m *member[T], field string, errs *sendgate.Errors) *T {
	switch {
	case !m.given:
		return nil
	case m.null:
		errs.Add(sendgate.Errorf(sendgate.CodeInvalidQuietHours, field, "cannot be null: null for quiet_hours as a whole takes them away"))
		return nil
	}
	return &m.value
}

// edit: null removes the cap.
func (c *userCapEdit) edit(path string, errs *sendgate.Errors) prefs.CapEdit {
	e := prefs.CapEdit{Category: c.Category.require(path+".category", errs)}
	switch {
	case !c.MaxCount.given:
		errs.Add(missing(path + ".max_count"))
	case !c.MaxCount.null:
		n, err := strconv.Atoi(string(c.MaxCount.value))
		if err != nil {
			errs.Add(sendgate.Errorf(sendgate.CodeInvalidCap, path+".max_count", "has to be a whole number, or null to remove the cap"))
		}
		e.MaxCount = &n
	}
	if window := c.Window.require(path+".window", errs); c.Window.given && !c.Window.null {
		var err error
		if e.Window, err = sendgate.ParseDuration(window); err != nil {
			errs.Add(sendgate.Errorf(sendgate.CodeInvalidCap, path+".window", "%v", err))
		}
	}
	return e
}
