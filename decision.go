package sendgate

import "time"

// Verdict is the answer to a check.
type Verdict uint8

// The verdicts.
const (
	Allow Verdict = iota
	Suppress
	Defer
)

// String is the verdict's name in the interface.
func (v Verdict) String() string { return [...]string{"allow", "suppress", "defer"}[v] }

// ParseVerdict reads `allow`, `suppress` or `defer`.
func ParseVerdict(s string) (Verdict, bool) {
	for v := Allow; v <= Defer; v++ {
		if v.String() == s {
			return v, true
		}
	}
	return 0, false
}

// Step is one stage of the pipeline, in the order they run.
type Step uint8

// The steps.
const (
	StepGlobal Step = iota
	StepFilter
	StepPreference
	StepQuietHours
	StepCaps
	stepCount
)

// Steps lists all steps in order.
func Steps() []Step {
	return []Step{StepGlobal, StepFilter, StepPreference, StepQuietHours, StepCaps}
}

// String is the step's name in the interface.
func (s Step) String() string {
	return [stepCount]string{"global", "filter", "preference", "quiet_hours", "caps"}[s]
}

// Reason says why a verdict was given.
type Reason uint8

// The reasons. The first four go with allow, the others with suppress or
// defer.
const (
	ReasonEssential         Reason = iota // the category cannot be switched off
	ReasonOptedIn                         // the user's own setting is on
	ReasonDefaultOn                       // unset, and the catalog's default is on
	ReasonUnverified                      // allowed without full knowledge
	ReasonGlobalUnsubscribe               // a hold stands
	ReasonOptedOut                        // the user's own setting is off
	ReasonDefaultOff                      // unset, and the catalog's default is off
	ReasonQuietHours                      // inside quiet hours, the user's or the operator's
	ReasonFrequencyCap                    // a cap is full
	ReasonUnverifiable                    // what had to be known could not be read
	ReasonNotTaken                        // it may go, and as many as were asked for had been taken before it
	reasonCount
)

// String is the reason's name in the interface.
func (r Reason) String() string {
	return [reasonCount]string{"essential", "opted_in", "default_on", "unverified", "global_unsubscribe",
		"opted_out", "default_off", "quiet_hours", "frequency_cap", "unverifiable", "not_taken"}[r]
}

// Decision answers one check.
type Decision struct {
	NotificationID string
	User           UserID
	Verdict        Verdict
	Reason         Reason
	Step           Step // the step that ended the check; for an allow, the last one that had something to judge
	Category       string
	Exact          bool      // false where only the filter said so
	Degraded       bool      // decided without full knowledge
	InProcess      bool      // decided without asking anybody
	DeliverAt      time.Time // with defer: first instant that quiet hours and caps would let it through; zero if none
	RetryAt        time.Time // the same with suppress
	Caps           []CapState
	CapsAt         time.Time     // when the caps were judged, by their own clock; zero if they were not
	Hold           time.Duration // after which the slots lapse unless delivery is reported; 0: never
	Uncapped       []BoundCap    // that an allow should have been judged by, and was not
}

// Finding is what one step found, for a person to read.
type Finding struct {
	Step    Step
	Finding string
	Took    time.Duration
}
