package sendgate

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Check asks whether one notification may go to one user on one channel now.
// The first four members are required. The others are what caps can be keyed
// by; an empty one is absent.
type Check struct {
	NotificationID string // idempotency key of the charge, scoped to the user
	User           UserID
	Topic          string
	Channel        string
	CampaignID     string
	SenderID       string
	CreativeID     string
	HouseholdID    string
	DeviceID       string
	Attributes     map[string]string
	Priority       Priority
}

// Priority is how much a notification matters to its sender. The zero value is
// normal.
type Priority int8

// The priorities, in order.
const (
	PriorityLow Priority = iota - 1
	PriorityNormal
	PriorityHigh
)

// String is the priority's name in the interface.
func (p Priority) String() string { return [...]string{"low", "normal", "high"}[p-PriorityLow] }

// ParsePriority reads `low`, `normal` or `high`; the empty string is normal.
func ParsePriority(s string) (Priority, bool) {
	switch s {
	case "low":
		return PriorityLow, true
	case "", "normal":
		return PriorityNormal, true
	case "high":
		return PriorityHigh, true
	}
	return PriorityNormal, false
}

// MaxAttributes is how many named attributes a check may carry.
const MaxAttributes = 32

const attributePrefix = "attributes."

var attributeName = regexp.MustCompile(`^[a-z0-9_][a-z0-9_.-]{0,63}$`)

// Field is one of a check's fields that a cap can be keyed by: `category`,
// `topic`, `channel`, `campaign_id`, `sender_id`, `creative_id`,
// `household_id`, `device_id`, or `attributes.NAME`.
type Field string

var plainFields = map[Field]func(*Check) string{
	"topic":        func(c *Check) string { return c.Topic },
	"channel":      func(c *Check) string { return c.Channel },
	"campaign_id":  func(c *Check) string { return c.CampaignID },
	"sender_id":    func(c *Check) string { return c.SenderID },
	"creative_id":  func(c *Check) string { return c.CreativeID },
	"household_id": func(c *Check) string { return c.HouseholdID },
	"device_id":    func(c *Check) string { return c.DeviceID },
}

// Known tells whether a cap may be keyed by f.
func (f Field) Known() bool {
	if name, ok := strings.CutPrefix(string(f), attributePrefix); ok {
		return attributeName.MatchString(name)
	}
	_, ok := plainFields[f]
	return ok || f == fieldCategory
}

// IsSubject tells whether f names somebody, or something, whose notifications a cap
// can count in place of the user's.
func (f Field) IsSubject() bool {
	return f.Known() && f != fieldCategory && f != "topic" && f != "channel"
}

// fieldCategory is the one field that comes from the catalog, not the check.
const fieldCategory Field = "category"

// value is the check's value of a field; empty means that the check does not
// carry it.
func (c *Check) value(f Field, category string) string {
	if f == fieldCategory {
		return category
	}
	if name, ok := strings.CutPrefix(string(f), attributePrefix); ok {
		return c.Attributes[name]
	}
	return plainFields[f](c)
}

// Validate holds a check against the catalog. An unknown topic or channel or
// an illegal id is an error, never a verdict.
func (c *Check) Validate(catalog *Catalog) error {
	errs := c.idFaults()
	if _, ok := catalog.Topic(c.Topic); !ok {
		errs.Add(Errorf(CodeUnknownTopic, "topic", "the catalog has no topic %q", Clip(c.Topic)))
	}
	if !catalog.HasChannel(c.Channel) {
		errs.Add(Errorf(CodeUnknownChannel, "channel", "the catalog has no channel %q", Clip(c.Channel)))
	}
	return append(errs, c.fieldFaults()...).Err()
}

// ValidateIDs is the part of Validate that needs no catalog: everything but
// topic and channel.
func (c *Check) ValidateIDs() error { return append(c.idFaults(), c.fieldFaults()...).Err() }

func (c *Check) idFaults() (errs Errors) {
	if why := idFault(c.NotificationID); why != "" {
		errs.Add(Errorf(CodeInvalidNotificationID, "notification_id", "a notification id %s", why))
	}
	errs.Add(c.User.Validate("user_id"))
	return errs
}

// fieldFaults looks at what caps can be keyed by.
func (c *Check) fieldFaults() (errs Errors) {
	for _, f := range []struct{ name, value string }{
		{"campaign_id", c.CampaignID}, {"sender_id", c.SenderID}, {"creative_id", c.CreativeID},
		{"household_id", c.HouseholdID}, {"device_id", c.DeviceID},
	} {
		if why := idFault(f.value); f.value != "" && why != "" {
			errs.Add(Errorf(CodeInvalidField, f.name, "%s %s", f.name, why))
		}
	}
	return append(errs, c.attributeFaults()...)
}

func (c *Check) attributeFaults() (errs Errors) {
	if len(c.Attributes) == 0 {
		return nil
	}
	if len(c.Attributes) > MaxAttributes {
		return Errors{Errorf(CodeInvalidField, "attributes", "a check carries at most %d attributes", MaxAttributes)}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Attributes)) {
		value, field := c.Attributes[name], attributePrefix+Clip(name)
		if !attributeName.MatchString(name) {
			errs.Add(Errorf(CodeInvalidField, field, "an attribute's name is 1 to 64 of a-z, 0-9, _, . and -"))
		} else if why := idFault(value); why != "" {
			errs.Add(Errorf(CodeInvalidField, field, "an attribute's value %s", why))
		}
	}
	return errs
}

// Clip shortens what a caller sent so that it can be shown in an error.
func Clip(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
