package replay

// Counters is how many are kept.
func (r *Replay) Counters() int { return len(r.counters) }
