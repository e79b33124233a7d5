package client

import (
	"time"

	"github.com/sendgate/sendgate"
)

// Decision answers one check.
type Decision struct {
	NotificationID string
	User           sendgate.UserID
	Verdict        sendgate.Verdict
	// Reason and Step are names, such as that of sendgate.ReasonQuietHours: a
	// gate may be newer than the client and have others.
	Reason    string
	Step      string
	Category  string    // empty where the client knows none
	Exact     bool      // false where only the filter of all opt-outs said so
	Degraded  bool      // decided without full knowledge
	DeliverAt time.Time // of a defer: first instant at which it would be let through, as far as is known; zero if there is none
	RetryAt   time.Time // the same of a suppress
	Caps      []Cap     // that were judged

	// ByClient says that no gate has decided, but the client. The gate may have
	// been asked, and its answer not have come in time: it has then taken a slot
	// perhaps. Asked again with the same notification id it takes no second one.
	ByClient bool
	Cause    error // why; nil unless ByClient. Match it with ErrTimeout and the like

	check sendgate.Check
	now   func() time.Time
}

// Cap is how one frequency cap stood.
type Cap struct {
	Kind     string           `json:"kind"`    // empty: rolling
	Subject  sendgate.Field   `json:"subject"` // whose notifications are counted; empty: the user's
	By       []sendgate.Field `json:"by"`
	Window   string           `json:"window"`
	Limit    int              `json:"limit"`
	Kept     int              `json:"kept"` // the last slots that are kept for a higher priority
	Used     int              `json:"used"`
	ResetsAt time.Time        `json:"resets_at"` // when the next slot comes free; zero if none ever will, or none is taken
}

// Outcome is the report of what became of the notification, on the check's
// channel. What was allowed without full knowledge may have taken no slot: the
// report of its delivery names all of the check, and the present instant, so that
// it is counted then, and once, whether it has taken one or not. Other reports
// name ids and channel alone, as of the moment at which they arrive; set At to
// date them.
func (d *Decision) Outcome(fate sendgate.Fate) sendgate.Outcome {
	if d.Degraded && fate == sendgate.Delivered {
		return sendgate.Outcome{Check: d.check, Fate: fate, At: d.now()}
	}
	return sendgate.Outcome{Check: sendgate.Check{
		NotificationID: d.check.NotificationID, User: d.check.User, Channel: d.check.Channel,
	}, Fate: fate}
}

// Result is the decision on one check of a list, or the refusal that stands in
// its place.
type Result struct {
	Decision Decision
	Err      error // *sendgate.Error or sendgate.Errors: this check is wrong, the others are unharmed
}
