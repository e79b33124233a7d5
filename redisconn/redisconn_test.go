package redisconn_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/sony/gobreaker/v2"
	"go.uber.org/goleak"

	"github.com/sendgate/sendgate/guard"
	"github.com/sendgate/sendgate/internal/redistest"
	"github.com/sendgate/sendgate/redisconn"
)

// limit is a check's for Redis. generous is what a loaded machine may add.
const (
	limit    = 5 * time.Millisecond
	generous = time.Second
)

// unreachable are Redises that never answer, by how.
var unreachable = map[string]func(*testing.T) string{
	"answers nothing": func(t *testing.T) string { return startFake(t, silent).addr() },
	"closed port": func(t *testing.T) string {
		f := startFake(t, silent)
		f.stop()
		return f.addr()
	},
}

func open(t *testing.T, o redisconn.Options) redis.UniversalClient {
	t.Helper()
	client, err := redisconn.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func optionsFor(mode, addr string) redisconn.Options {
	o := redisconn.Options{Mode: mode, Addrs: []string{addr}}
	if mode == "sentinel" {
		o.MasterName = "m"
	}
	return o
}

// Every call ends with its context, one by one and many at once, and nothing
// is left running after the client is closed.
func TestACallEndsWithItsContext(t *testing.T) {
	for how, server := range unreachable {
		for _, mode := range []string{"single", "sentinel", "cluster"} {
			t.Run(how+"/"+mode, func(t *testing.T) {
				addr := server(t)
				within := goleak.IgnoreCurrent()
				client := open(t, optionsFor(mode, addr))
				for name, call := range map[string]func(context.Context) error{
					"get": func(ctx context.Context) error { return client.Get(ctx, "k").Err() },
					"eval": func(ctx context.Context) error {
						return redis.NewScript("return 1").Run(ctx, client, []string{"k"}).Err()
					},
					"pipeline": func(ctx context.Context) error {
						_, err := client.Pipelined(ctx, func(p redis.Pipeliner) error {
							p.Get(ctx, "{a}1")
							p.Get(ctx, "{b}2")
							return nil
						})
						return err
					},
				} {
					for range 10 {
						ctx, cancel := context.WithTimeout(t.Context(), limit)
						began := time.Now()
						err := call(ctx)
						cancel()
						if took := time.Since(began); err == nil || took > limit+generous {
							t.Errorf("%s took %v: %v", name, took, err)
						}
						if redisconn.Answered(err) {
							t.Errorf("%s: %v counts as an answer", name, err)
						}
					}
				}
				if err := client.Close(); err != nil {
					t.Error(err)
				}
				redistest.Until(t, "nothing is left running", func() bool { return goleak.Find(within) == nil })
			})
		}
	}
}

// A Redis that is black-holed costs a check its time limit once, and ten
// checks in a row open the breaker.
func TestTheBreakerOpensOnABlackHole(t *testing.T) {
	f := startFake(t, silent)
	client := open(t, optionsFor("single", f.addr()))
	g := guard.New(guard.Options{Name: "redis", Limit: limit, InFlight: 8, Answered: redisconn.Answered})
	get := func(ctx context.Context) error { return client.Get(ctx, "k").Err() }
	for i := range 10 {
		if g.Open() {
			t.Fatalf("open after %d calls", i)
		}
		began := time.Now()
		err := g.Do(t.Context(), get)
		if took := time.Since(began); err == nil || took > limit+generous {
			t.Fatalf("call %d took %v: %v", i, took, err)
		}
		if !strings.HasPrefix(err.Error(), "redis: ") {
			t.Errorf("the error does not name the dependency: %v", err)
		}
	}
	if err := g.Do(t.Context(), get); !g.Open() || !errors.Is(err, gobreaker.ErrOpenState) {
		t.Fatalf("after ten: open %v, %v", g.Open(), err)
	}
	if n := f.count("get"); n != 0 {
		t.Errorf("%d GETs went over connections that never said hello", n)
	}
}

// A command whose answer is lost or late has been sent once.
func TestACommandIsSentOnce(t *testing.T) {
	for name, answer := range map[string]func(string) (string, bool){
		"no answer":      knowsGet("", false),
		"hung up on":     knowsGet("", true),
		"half a reply":   knowsGet("$5\r\nab", true),
		"is loading":     knowsGet("-LOADING Redis is loading the dataset in memory\r\n", false),
		"is a replica":   knowsGet("-READONLY You can't write against a read only replica.\r\n", false),
		"is no protocol": knowsGet("what?\r\n", false),
	} {
		t.Run(name, func(t *testing.T) {
			f := startFake(t, answer)
			client := open(t, optionsFor("single", f.addr()))
			redistest.Until(t, "the connection stands", func() bool { return redisErr(client.Ping(t.Context()).Err()) })
			for range 3 {
				before := f.count("get")
				ctx, cancel := context.WithTimeout(t.Context(), generous)
				err := client.Get(ctx, "k").Err()
				cancel()
				if n := f.count("get") - before; err == nil || n != 1 {
					t.Errorf("sent %d times: %v", n, err)
				}
				if redisconn.Answered(err) {
					t.Errorf("%v counts as the answer of a Redis that serves", err)
				}
			}
			if n := f.count("client"); n != 0 {
				t.Errorf("a connection began with %d commands nobody asked for", n)
			}
		})
	}
}

func redisErr(err error) bool {
	var given redis.Error
	return errors.As(err, &given)
}

func TestAnswered(t *testing.T) {
	server := redistest.Start(t)
	client, ctx := server.Client(), t.Context()
	if err := client.Set(ctx, "text", "x", 0).Err(); err != nil {
		t.Fatal(err)
	}
	given := map[string]error{
		"no key":                      client.Get(ctx, "nothing").Err(),
		"no script":                   client.EvalSha(ctx, strings.Repeat("0", 40), []string{"k"}).Err(),
		"wrong type":                  client.LPop(ctx, "text").Err(),
		"script failed":               client.Eval(ctx, "return redis.call('LPOP', KEYS[1])", []string{"text"}).Err(),
		"script is wrong":             client.Eval(ctx, "return nothing()", nil).Err(),
		"unknown command":             client.Do(ctx, "nonsense").Err(),
		"full, as scripts of old say": redisError("ERR Error running script (call to f_x): @user_script:1: -OOM command not allowed"),
		"saves nothing":               redisError("MISCONF Redis is configured to save RDB snapshots"),
	}
	if err := client.ConfigSet(ctx, "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	given["full"] = client.Set(ctx, "more", "x", 0).Err()
	given["full, in a script"] = client.Eval(ctx, "return redis.call('SET', KEYS[1], 'x')", []string{"more"}).Err()
	for name, err := range given {
		if !redisconn.Answered(err) || !redisconn.Answered(fmt.Errorf("read: %w", err)) {
			t.Errorf("%s: %v is no answer", name, err)
		}
	}
	get := client.Get
	server.Kill()
	for name, err := range map[string]error{
		"none":          nil,
		"gone":          get(ctx, "k").Err(),
		"hung up":       io.EOF,
		"late":          context.DeadlineExceeded,
		"no connection": redis.ErrPoolTimeout,
		"closed":        redis.ErrClosed,
		"beside a loss": errors.Join(redis.Nil, &net.OpError{Op: "read", Err: errors.New("reset")}),
		"loading":       redisError("LOADING Redis is loading the dataset in memory"),
		"cluster down":  redisError("CLUSTERDOWN The cluster is down"),
		"crowded":       redisError("ERR max number of clients reached"),
		"who are you":   fmt.Errorf("failed to authenticate: %w", redisError("WRONGPASS invalid username-password pair")),
		"held up":       redisError("BUSY Redis is busy running a script"),
	} {
		if redisconn.Answered(err) {
			t.Errorf("%s: %v is an answer", name, err)
		}
	}
}

// redisError is an error as Redis gives it.
type redisError string

func (e redisError) Error() string { return string(e) }
func (redisError) RedisError()     {}

// What Exec returns of a pipeline may hide a loss behind an answer: every
// command has an error of its own.
func TestAPipelineHasManyErrors(t *testing.T) {
	gets := 0
	f := startFake(t, func(command string) (string, bool) {
		if command != "get" {
			return "-ERR unknown command\r\n", false
		}
		gets++ // one connection is read by one goroutine, and there is one pipeline
		return map[int]string{1: "$-1\r\n"}[gets], gets > 1
	})
	client := open(t, redisconn.Options{Addrs: []string{f.addr()}, PoolSize: 1})
	pipe := client.Pipeline()
	first, second := pipe.Get(t.Context(), "a"), pipe.Get(t.Context(), "b")
	_, _ = pipe.Exec(t.Context())
	if !errors.Is(first.Err(), redis.Nil) || !redisconn.Answered(first.Err()) {
		t.Errorf("the first: %v", first.Err())
	}
	if second.Err() == nil || redisconn.Answered(second.Err()) {
		t.Errorf("the second: %v", second.Err())
	}
}

func TestOptions(t *testing.T) {
	for want, o := range map[string]redisconn.Options{
		"": {Addrs: []string{"127.0.0.1:6379"}},
		`mode: must be single, sentinel or cluster, not "ring"`:                        {Mode: "ring", Addrs: []string{"a:1"}},
		"addrs: at least one host:port of a Sentinel is needed":                        {Mode: "sentinel"},
		"master_name: what the Sentinels call the master, such as mymaster, is needed": {Mode: "sentinel", Addrs: []string{"a:1"}},
		`master_name: must be one word, not "my master"`:                               {Mode: "sentinel", Addrs: []string{"a:1"}, MasterName: "my master"},
		"sentinel_username: a user needs a password; without one nobody would be logged in": {
			Mode: "sentinel", Addrs: []string{"a:1"}, MasterName: "m", SentinelUsername: "u"},
		"master_name: is of mode: sentinel alone":                                  {Addrs: []string{"a:1"}, MasterName: "m"},
		"sentinel_username: is of mode: sentinel alone":                            {Mode: "cluster", Addrs: []string{"a:1"}, SentinelUsername: "u"},
		"sentinel_password: is of mode: sentinel alone":                            {Mode: "single", Addrs: []string{"a:1"}, SentinelPassword: "p"},
		"tls_ca: is of no use without tls: true":                                   {Addrs: []string{"a:1"}, TLSCA: "/f"},
		"tls_cert: is of no use without tls: true":                                 {Addrs: []string{"a:1"}, TLSCert: "/f", TLSKey: "/f"},
		"tls_server_name: is of no use without tls: true":                          {Addrs: []string{"a:1"}, TLSServerName: "h"},
		"tls_cert: a certificate needs its key, in tls_key":                        {Addrs: []string{"a:1"}, TLS: true, TLSCert: "/f"},
		"tls_key: a key needs its certificate, in tls_cert":                        {Addrs: []string{"a:1"}, TLS: true, TLSKey: "/f"},
		"addrs: at least one host:port is needed":                                  {Mode: "cluster"},
		"addrs: a single Redis has one address":                                    {Addrs: []string{"a:1", "b:1"}},
		`addrs[1]: must be host:port, not "b"`:                                     {Mode: "cluster", Addrs: []string{"a:1", "b"}},
		`addrs[1]: "a:1" is named twice`:                                           {Mode: "cluster", Addrs: []string{"a:1", "a:1"}},
		"pool_size: must be from 0 to 10000":                                       {Addrs: []string{"a:1"}, PoolSize: -1},
		"username: a user needs a password; without one nobody would be logged in": {Addrs: []string{"a:1"}, Username: "gate"},
	} {
		got := ""
		if err := o.Validate(); err != nil {
			got = err.Error()
		}
		if client, err := redisconn.Open(o); (err == nil) != (want == "") || got != want {
			t.Errorf("%+v: %q, want %q", o, got, want)
		} else if err == nil {
			_ = client.Close()
		}
	}
	for _, addr := range []string{"[::1]:6379", "redis.internal:6379", "10.0.0.1:65535"} {
		if err := redisconn.ValidateAddr(addr); err != nil {
			t.Error(err)
		}
	}
	for _, addr := range []string{"", ":6379", "a", "a:", "a:0", "a:65536", "a:-1", "a:+1", "a:redis", "::1:6379", " a:1", "redis://a:1", "a:1 ", "u@a:1"} {
		if redisconn.ValidateAddr(addr) == nil {
			t.Errorf("%q is taken", addr)
		}
	}
}
