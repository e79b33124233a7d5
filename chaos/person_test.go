package chaos_test

import (
	"math/rand/v2"
	"net/url"
)

// state is what a person has chosen. The zero state is that of somebody whom
// nobody has seen.
type state struct {
	noPromotions, noOrders bool
	hold                   hold
}

type hold uint8

const (
	noHold hold = iota
	softHold
	hardHold
)

// topic is what everybody is asked about: one of each class.
type topic struct {
	name, channel string
	stopped       func(state) bool
	// mayGuess says that what cannot be verified may be allowed.
	mayGuess bool
}

var topics = [...]topic{
	{"promotions", "email", func(s state) bool { return s.noPromotions || s.hold > noHold }, false},
	{"order_updates", "email", func(s state) bool { return s.noOrders || s.hold > noHold }, true},
	{"security_alerts", "push", func(s state) bool { return s.hold == hardHold }, true},
}

// limited is the topic of the caps, and limit how many of it a person gets in
// one run of this test.
const (
	limited = "digest"
	limit   = 5
)

// catalog is the gates' file; JSON is YAML.
func catalog() map[string]any {
	return map[string]any{
		"default_timezone": "UTC", "channels": []string{"push", "email"},
		"categories": map[string]any{
			"security":      map[string]any{"class": "essential"},
			"transactional": map[string]any{"class": "transactional"},
			"marketing":     map[string]any{"class": "marketing"},
			"limited": map[string]any{"class": "marketing", "caps": []any{
				map[string]any{"by": []string{"category"}, "window": "24h", "limit": limit},
			}},
		},
		"topics": map[string]any{
			"security_alerts": map[string]any{"category": "security"}, "order_updates": map[string]any{"category": "transactional"},
			"promotions": map[string]any{"category": "marketing"}, limited: map[string]any{"category": "limited"},
		},
	}
}

// answers are verdicts that are right.
type answers struct{ send, stop bool }

func (a *answers) add(about topic, s state) {
	if about.stopped(s) {
		a.stop = true
	} else {
		a.send = true
	}
}

func (a answers) allow(send bool) bool { return send && a.send || !send && a.stop }

// op is one change of a person.
type op struct {
	change       func(state) state
	method, path string
	body         map[string]any
}

// anyOp makes one up.
func anyOp(r *rand.Rand, user string) op {
	on := r.IntN(3) == 0 // most people go away
	switch r.IntN(6) {
	case 0, 1:
		return setting(user, topics[0], on, func(s state) state { s.noPromotions = !on; return s })
	case 2:
		return setting(user, topics[1], on, func(s state) state { s.noOrders = !on; return s })
	case 3:
		return unsubscribe(user, "user_requested", softHold)
	case 4:
		return unsubscribe(user, "account_deletion", hardHold)
	default:
		return op{
			change: func(s state) state { s.hold = noHold; return s },
			method: "POST", path: "/v1/preferences/resubscribe", body: map[string]any{"user_id": user, "reason": "back"},
		}
	}
}

func setting(user string, about topic, on bool, change func(state) state) op {
	return op{
		change: change, method: "PATCH", path: "/v1/users/" + url.PathEscape(user) + "/preferences",
		body: map[string]any{"preferences": []any{map[string]any{"topic": about.name, "channel": about.channel, "enabled": on}}},
	}
}

// unsubscribe places a hold. One that is harder stays.
func unsubscribe(user, reason string, h hold) op {
	return op{
		change: func(s state) state { s.hold = max(s.hold, h); return s },
		method: "POST", path: "/v1/preferences/unsubscribe-all", body: map[string]any{"user_id": user, "reason": reason},
	}
}
