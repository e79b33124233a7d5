package sendgate

// CatalogSpec is the catalog as an operator writes it. NewCatalog validates
// and compiles it; package catalogfile reads it from YAML.
type CatalogSpec struct {
	DefaultTimezone string                  `yaml:"default_timezone" json:"default_timezone"`
	Channels        []string                `yaml:"channels" json:"channels"`
	Categories      map[string]CategorySpec `yaml:"categories" json:"categories"`
	Topics          map[string]TopicSpec    `yaml:"topics" json:"topics"`
}

// CategorySpec is one policy group. Class is a preset for the four policies
// below it, each of which can be overridden.
type CategorySpec struct {
	Class          string             `yaml:"class" json:"class"`
	FilterHit      string             `yaml:"filter_hit,omitempty" json:"filter_hit,omitzero"`
	InQuietHours   string             `yaml:"in_quiet_hours,omitempty" json:"in_quiet_hours,omitzero"`
	OnCap          string             `yaml:"on_cap,omitempty" json:"on_cap,omitzero"`
	OnUnverifiable string             `yaml:"on_unverifiable,omitempty" json:"on_unverifiable,omitzero"`
	Count          string             `yaml:"count,omitempty" json:"count,omitzero"` // `on_allow`, the default, or `on_delivery`
	Hold           string             `yaml:"hold,omitempty" json:"hold,omitzero"`   // with on_delivery, as ParseDuration reads it
	Caps           []CapSpec          `yaml:"caps,omitempty" json:"caps,omitempty"`
	UserCaps       *UserCapsSpec      `yaml:"user_caps,omitempty" json:"user_caps,omitzero"`
	AllowedHours   []AllowedHoursSpec `yaml:"allowed_hours,omitempty" json:"allowed_hours,omitempty"`
}

// CapSpec is one frequency cap: at most Limit notifications per Window, per
// subject and per value of the fields in By.
type CapSpec struct {
	Kind    string  `yaml:"kind,omitempty" json:"kind,omitzero"`       // `rolling`, the default, `buckets` or `calendar`
	Subject Field   `yaml:"subject,omitempty" json:"subject,omitzero"` // whose notifications count; the user's by default
	By      []Field `yaml:"by" json:"by"`
	// Window is a duration as ParseDuration reads it; of a calendar it is `day`,
	// `week` or `month`.
	Window         string    `yaml:"window" json:"window"`
	Buckets        *int      `yaml:"buckets,omitempty" json:"buckets,omitzero"`   // 24 up to a day and 28 beyond by default
	Remember       string    `yaml:"remember,omitempty" json:"remember,omitzero"` // how long ids are known, where no log is kept
	Limit          *int      `yaml:"limit" json:"limit"`
	Keep           *KeepSpec `yaml:"keep,omitempty" json:"keep,omitzero"`
	OnUnverifiable string    `yaml:"on_unverifiable,omitempty" json:"on_unverifiable,omitzero"` // the category's by default
}

// KeepSpec keeps the last Slots of a cap for checks of a priority and above.
type KeepSpec struct {
	Slots int    `yaml:"slots" json:"slots"`
	For   string `yaml:"for" json:"for"` // `normal` or `high`
}

// UserCapsSpec lets users set caps of their own for a category, from 0 to
// Ceiling. Without it they may not.
type UserCapsSpec struct {
	Ceiling *int `yaml:"ceiling" json:"ceiling"`
}

// AllowedHoursSpec is a window, in the user's zone, outside which the category
// is quiet on the named channels; no channels means every channel. Several for
// one channel add up.
type AllowedHoursSpec struct {
	Channels []string `yaml:"channels,omitempty" json:"channels,omitempty"`
	Start    string   `yaml:"start" json:"start"`
	End      string   `yaml:"end" json:"end"`
	Days     []string `yaml:"days,omitempty" json:"days,omitempty"`
}

// TopicSpec is one topic: its category, and its default on every channel with
// the exceptions. Default is on where it is left out.
type TopicSpec struct {
	Category string            `yaml:"category" json:"category"`
	Default  string            `yaml:"default,omitempty" json:"default,omitzero"` // `on` or `off`
	Channels map[string]string `yaml:"channels,omitempty" json:"channels,omitempty"`
}
