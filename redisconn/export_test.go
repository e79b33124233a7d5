package redisconn

// Busy is to how many Redis something is under way.
func (p *Pipes) Busy() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.lines)
}

// SetRoom has so many callers wait for one Redis at most.
func (p *Pipes) SetRoom(n int) { p.room = n }

// Waiting is how many callers wait for a pipeline.
func (p *Pipes) Waiting() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.lines {
		n += len(l.waiting)
	}
	return n
}
