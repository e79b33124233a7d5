package freqcap

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
)

//go:embed charge.lua
var chargeLua string

// once is a command that must not be sent a second time when its answer is
// lost. Left alone, a cluster client repeats what a broken connection cost it.
type once struct{ *redis.Cmd }

// NoRetry tells go-redis so.
func (once) NoRetry() bool { return true }

// call puts units, no two of them of one user, to Redis in one guarded call. A
// unit that was put to it has answers afterwards, or an error. What is returned
// is why there was no answer from Redis, to some of them or to all; an error
// that Redis gave is an answer.
func (l *Limiter) call(ctx context.Context, units []unit) (lost error) {
	err := l.guard.Do(ctx, func(ctx context.Context) error {
		all := make([]*unit, len(units))
		for i := range units {
			all[i] = &units[i]
		}
		if lacking := l.send(ctx, all, "evalsha", l.sha); len(lacking) > 0 {
			// Nothing of these has run. They carry the script along this time,
			// so that a flush in between cannot make them fail again.
			l.send(ctx, lacking, "eval", l.source)
		}
		return worst(units)
	})
	if err != nil && !fromRedis(err) {
		return fmt.Errorf("judge caps: %w", err)
	}
	return nil
}

// send sends units in one pipeline and reads what comes back. It returns those
// that found Redis without the script. Once the context has ended it sends
// nothing.
func (l *Limiter) send(ctx context.Context, units []*unit, command, script string) (lacking []*unit) {
	if err := ctx.Err(); err != nil {
		for _, u := range units {
			u.err = fmt.Errorf("judge caps: %w", err)
		}
		return nil
	}
	pipe := l.client.Pipeline()
	commands := make([]once, len(units))
	for i, u := range units {
		commands[i] = once{redis.NewCmd(ctx, u.command(command, script)...)}
		commands[i].SetFirstKeyPos(3)
		_ = pipe.Process(ctx, commands[i]) // only queues
	}
	_, _ = pipe.Exec(ctx) // every command has its own error
	for i, u := range units {
		reply, err := commands[i].Result()
		u.answers, u.err = nil, nil
		switch {
		case redis.HasErrorPrefix(err, "NOSCRIPT"):
			lacking = append(lacking, u)
			u.err = err
		case err != nil:
			u.err = fmt.Errorf("judge caps: %w", err)
		default:
			u.answers, u.err = readReply(reply, u.candidates)
		}
	}
	return lacking
}

// worst is the error of a call as its guard should see it: one that Redis did
// not give itself, if there is one.
func worst(units []unit) (found error) {
	for _, u := range units {
		if u.err != nil && (found == nil || !fromRedis(u.err)) {
			found = u.err
		}
	}
	return found
}

// fromRedis tells whether an error is what Redis answered.
func fromRedis(err error) bool {
	var answered redis.Error
	return errors.As(err, &answered)
}
