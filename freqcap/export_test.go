package freqcap

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/guard"
	"github.com/sendgate/sendgate/keyspace"
)

// Scripts are the scripts, and what they begin with.
var Scripts = map[string]string{"presumed.lua": presumedLua, "record.lua": recordLua, "slots.lua": slotsLua, "judge.lua": judgeLua, "settle.lua": settleLua, "write.lua": writeLua}

// The one line of the script that reads Redis' clock, and what tests put in its
// place: it reads a list of the same two numbers, which carries the hash tag of
// the keys.
const (
	clockLine = "local clock = redis.call('TIME')\n"
	testLine  = "local clock = redis.call('LRANGE', string.match(KEYS[1], '^[^}]*}') .. ':clock', 0, 1)\n"
)

// NewOnTestClock makes a Limiter whose script differs in that line alone.
func NewOnTestClock(client redis.UniversalClient, space *keyspace.Space, g *guard.Guard) *Limiter {
	if strings.Count(recordLua, clockLine) != 1 {
		panic("the script does not read its clock in the line that tests replace")
	}
	l := New(client, space, g)
	l.judge = newScript(strings.Replace(l.judge.source, clockLine, testLine, 1))
	l.settle = newScript(strings.Replace(l.settle.source, clockLine, testLine, 1))
	return l
}

// SetTestClock sets the clock that the caps of a user are judged by, in
// milliseconds.
func SetTestClock(ctx context.Context, client redis.UniversalClient, space *keyspace.Space, user sendgate.UserID, millis int64) error {
	return setClock(ctx, client, space.Caps("", string(user)), millis)
}

func setClock(ctx context.Context, client redis.UniversalClient, key string, millis int64) error {
	tag, _, _ := strings.Cut(key, "}")
	key = tag + "}:clock"
	_, err := client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.Del(ctx, key)
		p.RPush(ctx, key, millis/1000, fmt.Sprint(millis%1000*1000+999))
		return nil
	})
	return err
}

// SetSubjectClock is SetTestClock for another subject than a user.
func SetSubjectClock(ctx context.Context, client redis.UniversalClient, space *keyspace.Space, subject sendgate.Field, id string, millis int64) error {
	return setClock(ctx, client, space.Caps(subject, id), millis)
}

// SetNow sets the clock around which a Limiter looks up periods of the calendar.
func (l *Limiter) SetNow(now func() time.Time) { l.now = now }

// Decode reads a record.
func Decode(record string, now time.Time) (Usage, error) { return decode(record, now) }

// JudgeSource is the script that judges.
func (l *Limiter) JudgeSource() string { return l.judge.source }

// JudgeCommand is the command that judges one ask of a user.
func (l *Limiter) JudgeCommand(user sendgate.UserID, id string, caps []sendgate.BoundCap) []any {
	ask := sendgate.CapAsk{User: user, NotificationID: id, Channel: "push", Caps: caps}
	c := l.candidates([]sendgate.CapAsk{ask}, false, make([]sendgate.CapAnswer, 1))[0]
	u := unit{key: c.parts[0].key, items: []*item{{candidate: &c, part: &c.parts[0]}}}
	return append([]any{"evalsha", l.judge.sha, 1, u.key}, u.arguments(0, newToken())...)
}

// boundsLine is the line of the script that says how much a record holds at most.
const boundsLine = "mostEntries, mostIDs, mostNotes, mostHolds = 65535, 10000, 250, 3000\n"

// SetBounds has records hold at most so many ids, where they are only remembered,
// and notes a section, and so many holds.
func (l *Limiter) SetBounds(ids, notes, holds int) {
	if strings.Count(recordLua, boundsLine) != 1 {
		panic("the script does not say what a record holds in the line that tests replace")
	}
	bounds := fmt.Sprintf("mostEntries, mostIDs, mostNotes, mostHolds = 65535, %d, %d, %d\n", ids, notes, holds)
	l.judge = newScript(strings.Replace(l.judge.source, boundsLine, bounds, 1))
	l.settle = newScript(strings.Replace(l.settle.source, boundsLine, bounds, 1))
}

// DieBeforeTheEnd has a Limiter do nothing of what comes after it has judged: it
// neither confirms nor drops what it holds for a moment, like one that is killed.
func (l *Limiter) DieBeforeTheEnd() { l.settle = newScript("return redis.error_reply('killed')") }
