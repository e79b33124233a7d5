package freqcap

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/sendgate/sendgate/redisconn"
)

//go:embed charge.lua
var chargeLua string

// call puts units, no two of them of one user, to Redis in one guarded call. A
// unit that was put to it has answers afterwards, or an error. What is returned
// is why there was no answer from Redis to any of them; an error that Redis gave
// is an answer.
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
		return unanswered(units)
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
	replies, commands := make([]*redis.Cmd, len(units)), make([]redisconn.Command, len(units))
	for i, u := range units {
		replies[i] = redis.NewCmd(ctx, u.command(command, script)...)
		replies[i].SetFirstKeyPos(3)
		commands[i] = redisconn.Command{Key: u.candidates[0].counters[0].key, Cmder: replies[i]}
	}
	redisconn.Exec(ctx, l.client, commands)
	for i, u := range units {
		reply, err := replies[i].Result()
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

// unanswered is why there was no answer to any unit; nil if there was one, which
// shows that Redis, or a part of it, is alive.
func unanswered(units []unit) (why error) {
	for _, u := range units {
		if u.err == nil || fromRedis(u.err) {
			return u.err
		}
		why = u.err
	}
	return why
}

// fromRedis tells whether an error is what Redis answered.
func fromRedis(err error) bool {
	var answered redis.Error
	return errors.As(err, &answered)
}
