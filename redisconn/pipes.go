package redisconn

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// mostUnderWay is how many pipelines are under way to one Redis before commands
	// wait to share the next. With two, one that hangs on a connection that is gone
	// does not hold up everybody.
	mostUnderWay = 2
	// mostShared is about how many commands share a pipeline: a hundred scripts are
	// well within a time limit of 5 ms.
	mostShared = 128
	// longList is how many commands are a pipeline of their own.
	longList = 16
	// mostWaiting is how many callers wait for the next pipeline to one Redis at
	// most. Those beyond go by themselves.
	mostWaiting = 4096
)

// Pipes sends the commands of callers that come at the same time in common
// pipelines. It sets its own pace: while few pipelines are under way to a Redis a
// caller's commands go at once, as by Exec, and otherwise with the next one. So a
// caller without company waits for nobody, and a crowd takes few round trips.
//
// It is safe for concurrent use, and runs nothing when there is nothing to send.
type Pipes struct {
	client redis.UniversalClient
	most   int // pipelines under way to one Redis
	room   int // for callers who wait for one Redis

	mu    sync.Mutex
	lines map[sender]*line // of each Redis to which something is under way
}

// line is what goes to one Redis.
type line struct {
	underWay int // pipelines
	waiting  []*group
}

// group is what one caller has sent.
type group struct {
	commands []Command
	leads    bool          // its pipeline: it is the first in it
	deadline time.Time     // zero: none
	answered chan struct{} // closed once every command has its answer
}

// NewPipes makes the pipes of a client, which is not closed.
func NewPipes(client redis.UniversalClient) *Pipes {
	return &Pipes{client: client, most: mostUnderWay, room: mostWaiting, lines: map[sender]*line{}}
}

// Exec is like the function Exec, and returns the commands' errors. A caller whose
// context ends leaves at once with its error, and harms nobody who shares the
// pipeline. It may not look at a command after that: the answer may still be on its
// way. The commands may have run, as with any error that is not Redis' own.
func (p *Pipes) Exec(ctx context.Context, commands []Command) []error {
	return exec(ctx, p.client, commands, p.send)
}

// send sends one caller's commands to one Redis. The error says that they were not
// waited for.
func (p *Pipes) send(ctx context.Context, node sender, commands []Command) (followed bool, left error) {
	g, l := p.wait(ctx, node, commands)
	if g == nil {
		send(ctx, node, commands)
		if lot := p.next(node, l); lot != nil {
			go p.carry(node, l, lot)
		}
		return false, nil
	}
	select {
	case <-g.answered:
		return !g.leads, nil
	case <-ctx.Done():
		p.mu.Lock()
		defer p.mu.Unlock()
		if at := slices.Index(l.waiting, g); at >= 0 {
			l.waiting = slices.Delete(l.waiting, at, at+1)
		}
		return !g.leads, ctx.Err()
	}
}

// wait lets commands wait for the next pipeline. There is no group if they are to
// go at once.
func (p *Pipes) wait(ctx context.Context, node sender, commands []Command) (*group, *line) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.lines[node]
	if l == nil {
		l = &line{}
		p.lines[node] = l
	}
	if l.underWay < p.most || len(commands) >= longList || len(l.waiting) == p.room {
		l.underWay++
		return nil, l
	}
	g := &group{commands: commands, answered: make(chan struct{})}
	g.deadline, _ = ctx.Deadline()
	l.waiting = append(l.waiting, g)
	return g, l
}

// next takes who is to share the pipeline that follows one which has ended: nobody
// if nobody waits.
func (p *Pipes) next(node sender, l *line) []*group {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(l.waiting) == 0 || l.underWay > p.most {
		if l.underWay--; l.underWay == 0 {
			delete(p.lines, node)
		}
		return nil
	}
	n := 0
	for commands := 0; n < len(l.waiting) && commands < mostShared; n++ {
		commands += len(l.waiting[n].commands)
	}
	lot := slices.Clone(l.waiting[:n])
	lot[0].leads = true
	l.waiting = slices.Delete(l.waiting, 0, n)
	return lot
}

// carry sends one pipeline after the other, for as long as anybody waits.
func (p *Pipes) carry(node sender, l *line, lot []*group) {
	for ; lot != nil; lot = p.next(node, l) {
		sendShared(node, lot)
		for _, g := range lot {
			close(g.answered)
		}
	}
}

// sendShared sends what several have sent in one pipeline. It has as long as the one
// of them who waits longest; the others leave before.
func sendShared(node sender, lot []*group) {
	ctx := context.Background()
	latest, endless := time.Time{}, false
	var commands []Command
	for _, g := range lot {
		commands = append(commands, g.commands...)
		endless = endless || g.deadline.IsZero()
		if g.deadline.After(latest) {
			latest = g.deadline
		}
	}
	if !endless {
		limited, cancel := context.WithDeadline(ctx, latest)
		defer cancel()
		ctx = limited
	}
	send(ctx, node, commands)
}
