package freqcap

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/sendgate/sendgate"
)

// What settle.lua is told.
const (
	opDelivered = "delivered"
	opFailed    = "failed"
	opConfirm   = "confirm"
	opDrop      = "drop"
)

// maxReports is how many reports one run of the script takes at most.
const maxReports = 128

// order is one thing to do about one id in one subject's record.
type order struct {
	key         string
	what        string
	id, channel string
	at          int64 // milliseconds; 0 is now
	hold        int64
	token       string
	counters    []counter
	done        receipt
}

// receipt is what the script said of an order.
type receipt struct {
	status int64
	at     int64
	over   int
	others []string // sections that name other subjects which hold slots for the id
	err    error
}

// carryOut carries out orders, those of one subject in their order, in as many
// calls as it takes.
func (l *Limiter) carryOut(ctx context.Context, orders []*order) {
	var lost error
	for some := range slices.Chunk(orders, maxReports) {
		bySubject, keys := map[string][]*order{}, []string{}
		for _, o := range some {
			if bySubject[o.key] == nil {
				keys = append(keys, o.key)
			}
			bySubject[o.key] = append(bySubject[o.key], o)
		}
		runs := make([]*run, len(keys))
		for i, key := range keys {
			runs[i] = &run{key: key, arguments: settleArguments(bySubject[key])}
		}
		if lost == nil {
			lost = l.runAll(ctx, l.settle, runs)
		}
		for _, r := range runs {
			if r.err == nil {
				r.err = lost
			}
			if r.err == nil {
				r.err = readSettled(r.reply, bySubject[r.key])
			}
			for _, o := range bySubject[r.key] {
				o.done.err = r.err
			}
		}
	}
}

func settleArguments(orders []*order) (args []any) {
	for _, o := range orders {
		args = append(args, o.what, o.id, o.channel, o.at, o.hold, o.token, len(o.counters))
		for _, k := range o.counters {
			args = append(args, k.name, k.span, k.limit, k.tally)
		}
	}
	return args
}

// readSettled reads what settle.lua said.
func readSettled(reply any, orders []*order) error {
	list, ok := reply.([]any)
	for _, o := range orders {
		if !ok || len(list) < 4 {
			return fmt.Errorf("%w: it ends early", errReply)
		}
		status, okStatus := numberUpTo(list[0], int64(sendgate.StatusUnchanged))
		at, okAt := numberUpTo(list[1], latestMillis)
		over, okOver := numberUpTo(list[2], math.MaxInt32)
		n, okN := numberUpTo(list[3], int64(len(list)-4))
		if !okStatus || !okAt || !okOver || !okN {
			return fmt.Errorf("%w: %v", errReply, list[:4])
		}
		o.done = receipt{status: status, at: at, over: int(over)}
		for _, name := range list[4 : 4+n] {
			text, ok := name.(string)
			if !ok {
				return fmt.Errorf("%w: a %T for a name", errReply, name)
			}
			o.done.others = append(o.done.others, text)
		}
		list = list[4+n:]
	}
	if !ok || len(list) > 0 {
		return fmt.Errorf("%w: %d values are left over", errReply, len(list))
	}
	return nil
}

// conclude makes an end of what is held for candidates of several subjects: of one
// that goes it is kept, or held for as long as the check's category says;
// otherwise it is dropped. What nobody gets to lapses by itself.
func (l *Limiter) conclude(ctx context.Context, candidates [][]*item, token string) {
	var orders []*order
	ordered := map[*order]*item{}
	for _, parts := range candidates {
		if len(parts) < 2 {
			continue
		}
		what := opDrop
		if goes(parts) {
			what = opConfirm
		}
		for _, it := range parts {
			if it.judged.err != nil || it.judged.flag != charged {
				continue
			}
			o := &order{
				key: it.key, what: what, id: it.id, channel: it.channel, at: it.judged.at, hold: it.ask.Hold.Milliseconds(), token: token, counters: it.counters,
			}
			orders, ordered[o] = append(orders, o), it
		}
	}
	l.carryOut(ctx, orders)
	for _, o := range orders {
		it := ordered[o]
		switch {
		case o.what == opDrop:
			it.dropped()
		case o.done.err != nil:
			it.judged.err = o.done.err
		case o.done.status != int64(sendgate.StatusSettled):
			it.judged.err = judgeError(errLapsed)
		}
	}
}

var errLapsed = errors.New("what was held had lapsed before all subjects had answered")

// dropped takes slots that an item does not keep out of what is said of its caps.
func (it *item) dropped() {
	for i := range it.judged.states {
		if it.judged.fresh[i] {
			it.judged.states[i].Used--
		}
	}
}

// Settle takes reports, in order. Each is one atomic step in the user's record,
// and one more in those of other subjects which hold slots for the id.
func (l *Limiter) Settle(ctx context.Context, reports []sendgate.CapReport) []sendgate.CapReceipt {
	receipts := make([]sendgate.CapReceipt, len(reports))
	byReport := make([][]*order, len(reports))
	var first []*order
	now := l.now()
	for i := range reports {
		parts, err := partsOf(l.space, reports[i].User, reports[i].NotificationID, reports[i].Caps, now)
		if err != nil {
			receipts[i].Err = judgeError(err)
			continue
		}
		for p := range parts {
			byReport[i] = append(byReport[i], orderOf(&reports[i], &parts[p]))
		}
		first = append(first, byReport[i]...)
	}
	l.carryOut(ctx, first)
	var linked []*order
	for i, orders := range byReport {
		more := l.linked(&reports[i], orders)
		byReport[i] = append(orders, more...)
		linked = append(linked, more...)
	}
	l.carryOut(ctx, linked)
	for i, orders := range byReport {
		if receipts[i].Err == nil {
			receipts[i] = receiptOf(orders)
		}
	}
	return receipts
}

func orderOf(r *sendgate.CapReport, p *part) *order {
	o := &order{key: p.key, what: opFailed, id: p.id, counters: p.counters}
	if r.Fate == sendgate.Delivered {
		o.what = opDelivered
	}
	if r.Channel != "" {
		o.channel = channelTag(r.Channel)
	}
	if !r.At.IsZero() {
		o.at = max(1, r.At.UnixMilli())
	}
	return o
}

// linked are the orders for subjects that the user's record links to and nobody
// has named.
func (l *Limiter) linked(r *sendgate.CapReport, orders []*order) (more []*order) {
	if len(orders) == 0 {
		return nil
	}
	for _, name := range orders[0].done.others {
		subject, id, ok := readField(name[1:])
		if !ok {
			continue
		}
		key := l.space.Caps(subject, id)
		if !slices.ContainsFunc(orders, func(o *order) bool { return o.key == key }) {
			more = append(more, orderOf(r, &part{key: key, id: shortID(r.User, r.NotificationID)}))
		}
	}
	return more
}

// receiptOf puts together what came of a report in every record: the strongest
// status, and an error if there was any.
func receiptOf(orders []*order) (r sendgate.CapReceipt) {
	for i, o := range orders {
		if o.done.err != nil {
			return sendgate.CapReceipt{Err: o.done.err}
		}
		if status := sendgate.Status(o.done.status); strength(status) > strength(r.Status) {
			r.Status = status
		}
		if r.Over += o.done.over; i == 0 { // the user's own
			r.At = time.UnixMilli(o.done.at).UTC()
		}
	}
	return r
}

func strength(s sendgate.Status) int {
	return slices.Index([]sendgate.Status{
		sendgate.StatusUnknown, sendgate.StatusExpired, sendgate.StatusUnchanged, sendgate.StatusSettled, sendgate.StatusGivenBack,
	}, s)
}
