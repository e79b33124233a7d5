package replay

import (
	"slices"
	"time"

	"github.com/sendgate/sendgate"
)

// Live lists the slots that count at an instant, as deliveries to be counted
// again: one for each notification and moment, by rising time. Slots that wait
// for a report of delivery are among them until their holds end. To be called
// after Finish.
func (r *Replay) Live(now time.Time) ([]sendgate.CapReport, error) {
	type key struct {
		id      id
		channel string
		at      int64
	}
	reports := map[key]*sendgate.CapReport{}
	for _, c := range r.counters {
		c.pass(max(now.UnixMilli(), r.reached))
		c.turn(c.latest.Zone, now.UnixMilli())
		for _, s := range c.slots {
			if !c.counts(s.at, now.UnixMilli()) {
				continue
			}
			bound, err := c.latest.Bound(s.id.user)
			if err != nil {
				return nil, err
			}
			k := key{s.id, s.channel, s.at}
			if reports[k] == nil {
				reports[k] = &sendgate.CapReport{
					User: s.id.user, NotificationID: s.id.name, Channel: s.channel, Fate: sendgate.Delivered, At: timeOf(s.at),
				}
			}
			reports[k].Caps = append(reports[k].Caps, bound)
		}
	}
	live := make([]sendgate.CapReport, 0, len(reports))
	for _, report := range reports {
		live = append(live, *report)
	}
	slices.SortFunc(live, func(a, b sendgate.CapReport) int { return a.At.Compare(b.At) })
	return live, nil
}
