package freqcap

import (
	"context"
	_ "embed" // the scripts
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/sendgate/sendgate/redisconn"
)

var (
	//go:embed presumed.lua
	presumedLua string
	//go:embed record.lua
	recordLua string
	//go:embed slots.lua
	slotsLua string
	//go:embed judge.lua
	judgeLua string
	//go:embed settle.lua
	settleLua string
	//go:embed write.lua
	writeLua string
)

// script is a script, and the name by which Redis knows it.
type script struct{ source, sha string }

func newScript(source string) *script {
	return &script{source: source, sha: redis.NewScript(source).Hash()}
}

// run is one run of a script on a record.
type run struct {
	key       string
	record    string // key of a record that the script looks at; empty if there is none
	arguments []any
	reply     any
	err       error
}

// runAll runs a script on several records, all different, in one guarded call.
// Each run has a reply afterwards, or an error. What is returned is why there was
// no answer from Redis to any of them; an error that Redis gave is an answer.
func (l *Limiter) runAll(ctx context.Context, s *script, runs []*run) (lost error) {
	err := l.guard.Do(ctx, func(ctx context.Context) error {
		if lacking := l.send(ctx, runs, "evalsha", s.sha); len(lacking) > 0 {
			// Nothing of these has run. They carry the script along this time,
			// so that a flush in between cannot make them fail again.
			l.send(ctx, lacking, "eval", s.source)
		}
		return unanswered(runs)
	})
	if err != nil && !fromRedis(err) {
		return judgeError(err)
	}
	return nil
}

// send sends runs in one pipeline and reads what comes back. It returns those
// that found Redis without the script. Once the context has ended it sends
// nothing.
func (l *Limiter) send(ctx context.Context, runs []*run, command, script string) (lacking []*run) {
	if err := ctx.Err(); err != nil {
		for _, r := range runs {
			r.err = judgeError(err)
		}
		return nil
	}
	replies, commands := make([]*redis.Cmd, len(runs)), make([]redisconn.Command, len(runs))
	for i, r := range runs {
		args := append(make([]any, 0, 5+len(r.arguments)), command, script, 1, r.key)
		if r.record != "" {
			args[2] = 2
			args = append(args, r.record)
		}
		replies[i] = redis.NewCmd(ctx, append(args, r.arguments...)...)
		replies[i].SetFirstKeyPos(3)
		commands[i] = redisconn.Command{Key: r.key, Cmder: replies[i]}
	}
	errs := l.pipes.Exec(ctx, commands)
	for i, r := range runs {
		if r.err = errs[i]; r.err == nil {
			r.reply = replies[i].Val()
		}
		switch {
		case redis.HasErrorPrefix(r.err, "NOSCRIPT"):
			lacking = append(lacking, r)
		case r.err != nil:
			r.err = judgeError(r.err)
		}
	}
	return lacking
}

// unanswered is why there was no answer to any run; nil if there was one, which
// shows that Redis, or a part of it, is alive.
func unanswered(runs []*run) (why error) {
	for _, r := range runs {
		if r.err == nil || fromRedis(r.err) {
			return r.err
		}
		why = r.err
	}
	return why
}

// fromRedis tells whether an error is what Redis answered.
func fromRedis(err error) bool {
	var answered redis.Error
	return errors.As(err, &answered)
}

// judgeUnits has units judged, no two of them of one subject, in one call.
func (l *Limiter) judgeUnits(ctx context.Context, units []unit, take int, token string) (lost error) {
	runs := make([]*run, len(units))
	for i := range units {
		record, _ := units[i].record()
		runs[i] = &run{key: units[i].key, record: record, arguments: units[i].arguments(take, token)}
	}
	if lost := l.runAll(ctx, l.judge, runs); lost != nil {
		return lost
	}
	for i, r := range runs {
		if r.err == nil {
			r.err = readJudged(r.reply, units[i].items)
		}
		if r.err != nil {
			units[i].fail(fmt.Errorf("caps of one subject: %w", r.err))
		}
	}
	return nil
}
