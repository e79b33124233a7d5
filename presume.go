package sendgate

import "slices"

// Memory remembers what users' records were when they were last read. That may be
// old: a check goes by it only where whoever judges its caps finds, in the same
// step, that the record is so still. It saves such a check a round trip.
type Memory interface {
	// Recall returns what is remembered of a user's record, if it is of a revision
	// or a later one. Without anything the Preferences are nil.
	Recall(user UserID, atLeast int64) Remembered
	// Tried is told whether a record was found to be as it was remembered.
	Tried(user UserID, m Remembered, held bool)
}

// Remembered is a user's preferences, and the very value that the cache held of
// them.
type Remembered struct {
	Preferences *Preferences // shared and never changed
	Value       string
}

// noMemory remembers nothing.
type noMemory struct{}

func (noMemory) Recall(UserID, int64) Remembered { return Remembered{} }
func (noMemory) Tried(UserID, Remembered, bool)  {}

// presume has checks go by what is remembered of their users' records, and returns
// those whose records have to be read. What is refuted is judged after the rest of
// the list: so of one user's checks all go by it or none does, and no check of
// several does that shares caps with other users, for slots to be given in the order
// of the list.
func (r *round) presume(cases []*checkCase) (rest []*checkCase) {
	if r.taking {
		return cases
	}
	byUser := make(map[UserID]Remembered, len(cases))
	for _, c := range cases {
		m, seen := byUser[c.check.User]
		if !seen {
			m = r.memory.Recall(c.check.User, c.atLeast())
		}
		if !c.mayPresume(m.Preferences) || len(cases) > 1 && c.category.sharesCaps() {
			m = Remembered{}
		}
		byUser[c.check.User] = m
	}
	for _, c := range cases {
		if m := byUser[c.check.User]; m.Preferences != nil {
			c.presumed = m
			r.adopt(c, m.Preferences)
		} else {
			rest = append(rest, c)
		}
	}
	return rest
}

// mayPresume tells whether a check that goes by some preferences would get as far
// as its caps, where they are proved. What only reads need not be proved.
func (c *checkCase) mayPresume(p *Preferences) bool {
	if p == nil || c.again || c.explain || c.category.Essential || p.Global() || len(c.category.Caps)+len(p.Caps) == 0 {
		return false
	}
	_, on := c.ruling(p.Settings)
	return on
}

// sharesCaps tells whether a category has caps that count for others than the user.
func (c *Category) sharesCaps() bool {
	return slices.ContainsFunc(c.Caps, func(own Cap) bool { return own.Subject != "" })
}

// atLeast is the least revision of the user's record that this process knows of.
func (c *checkCase) atLeast() int64 {
	if c.known {
		return c.consent.Revision
	}
	return 0
}

// prove notes what an answer says of what a check has presumed. Without an answer
// nothing is proved.
func (r *round) prove(c *checkCase, a *CapAnswer) {
	if c.presumed.Preferences == nil {
		return
	}
	c.proved = !a.Refuted && a.Err == nil
	if c.proved || a.Refuted {
		r.memory.Tried(c.check.User, c.presumed, c.proved)
	}
}

// unproved puts the checks that have presumed something nobody has proved back to
// where they began, to presume nothing this time.
func (r *round) unproved(batch []*checkCase) (again []*checkCase) {
	for _, c := range batch {
		if c.presumed.Preferences != nil && !c.proved {
			check, at := c.check, c.at
			*c = checkCase{again: true}
			c.open(check, r.catalog, at)
			again = append(again, c)
		}
	}
	return again
}
