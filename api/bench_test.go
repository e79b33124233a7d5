package api

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/labstack/echo/v4"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/bloom"
	"github.com/sendgate/sendgate/metrics"
)

// benchBody is the check that every layer answers: an opt-out that the overlay
// knows.
const benchBody = `{"notification_id":"n_0000000001","user_id":"u_42","topic":"promotions","channel":"push","campaign_id":"spring"}`

// bareCheck and bareAnswer are what the bare handlers read and write.
type bareCheck struct {
	NotificationID string            `json:"notification_id"`
	UserID         string            `json:"user_id"`
	Topic          string            `json:"topic"`
	Channel        string            `json:"channel"`
	CampaignID     string            `json:"campaign_id"`
	SenderID       string            `json:"sender_id"`
	CreativeID     string            `json:"creative_id"`
	HouseholdID    string            `json:"household_id"`
	DeviceID       string            `json:"device_id"`
	Attributes     map[string]string `json:"attributes"`
	Priority       string            `json:"priority"`
}

type bareAnswer struct {
	NotificationID string `json:"notification_id"`
	Verdict        string `json:"verdict"`
}

// layer is a handler with one thing more than the one before it.
type layer struct {
	name    string
	handler http.Handler
	limits  bool // served by Server.Serve, which limits connections
}

// benchGate is a gate that knows the opt-out of benchBody.
func benchGate(b *testing.B, o sendgate.Observer) *sendgate.Gate {
	overlay := bloom.NewOverlay(10_000)
	overlay.SetLive(true)
	overlay.Apply(sendgate.Consent{
		User: user, Revision: 1_000_007, Settings: sendgate.Settings{{Topic: "promotions", Channel: "push"}: false},
	}, sendgate.Place{})
	return sendgate.NewGate(sendgate.Options{Catalog: testCatalog(b), Overlay: overlay, Observer: o})
}

// routed is an echo with one route and nothing around it.
func routed(h echo.HandlerFunc) http.Handler {
	e := echo.New()
	e.POST("/v1/check", h)
	return e
}

// layers are the bare handlers, and what a gate does on top, thing by thing.
func layers(b *testing.B) []layer {
	plain := benchGate(b, noObserver{})
	own := func(f func(s *Server, c *call) (reply, error)) http.Handler {
		s := &Server{o: Options{Gate: plain}}
		return routed(func(c echo.Context) error { return s.handle(f, c) })
	}
	decoded := func(c *call) (sendgate.Check, error) {
		data, err := c.body(maxBodyBytes)
		if err != nil {
			return sendgate.Check{}, err
		}
		return parseCheck(data)
	}
	constant := yamlText(`{"notification_id":"n_0000000001","verdict":"suppress"}` + "\n")
	m := metrics.New()
	counted := benchGate(b, m)
	server := func(o Options) http.Handler { return New(o) }
	logging := slog.New(slog.NewJSONHandler(io.Discard, nil))
	whole := server(Options{Gate: counted, Observe: m.Requested, Log: logging})
	return []layer{
		{"bare: Bind and JSON", routed(func(c echo.Context) error {
			var check bareCheck
			if err := c.Bind(&check); err != nil {
				return err
			}
			return c.JSON(http.StatusOK, bareAnswer{check.NotificationID, "suppress"})
		}), false},
		{"bare: the JSON library in use", routed(func(c echo.Context) error {
			data, err := io.ReadAll(c.Request().Body)
			if err != nil {
				return err
			}
			var check bareCheck
			if err := json.Unmarshal(data, &check); err != nil {
				return err
			}
			answer, err := json.Marshal(bareAnswer{check.NotificationID, "suppress"})
			if err != nil {
				return err
			}
			return c.Blob(http.StatusOK, jsonType, answer)
		}), false},
		{"decode", own(func(_ *Server, c *call) (reply, error) {
			_, err := decoded(c)
			return reply{body: constant}, err
		}), false},
		{"validate", own(func(s *Server, c *call) (reply, error) {
			check, err := decoded(c)
			if err == nil {
				err = check.Validate(s.o.Gate.Catalog())
			}
			return reply{body: constant}, err
		}), false},
		{"decide", own(func(s *Server, c *call) (reply, error) {
			check, err := decoded(c)
			if err != nil {
				return reply{}, err
			}
			d, err := s.o.Gate.Decide(c.r.Context(), check)
			if d.Verdict != sendgate.Suppress {
				panic("not the opt-out")
			}
			return reply{body: constant}, err
		}), false},
		{"encode", own((*Server).check), false},
		{"middleware", server(Options{Gate: plain}), false},
		{"metrics", server(Options{Gate: counted, Observe: m.Requested}), false},
		{"logging", whole, false},
		{"limits of the connection", whole, true},
	}
}

// cpu is the processor time that this process has used.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// cost is what one request took.
type cost struct{ wall, cpu, allocs float64 }

// inTurns has every layer answer n requests in every round, and gives each its
// medians. What else the machine does falls on all of them.
func inTurns(b *testing.B, layers []layer, rounds, n int, run func(i, n int)) []cost {
	costs := make([][3][]float64, len(layers))
	var before, after runtime.MemStats
	for range rounds {
		for i := range layers {
			runtime.GC()
			runtime.ReadMemStats(&before)
			began, used := time.Now(), cpu(b)
			run(i, n)
			spent, took := cpu(b)-used, time.Since(began)
			runtime.ReadMemStats(&after)
			for k, v := range []float64{float64(took), float64(spent), float64(after.Mallocs - before.Mallocs)} {
				costs[i][k] = append(costs[i][k], v/float64(n))
			}
		}
	}
	medians := make([]cost, len(layers))
	for i := range costs {
		for k := range costs[i] {
			slices.Sort(costs[i][k])
		}
		medians[i] = cost{costs[i][0][rounds/2], costs[i][1][rounds/2], costs[i][2][rounds/2]}
	}
	return medians
}

// table logs what each layer costs, as time and as the ratio of requests per
// second to those of the bare handler.
func table(b *testing.B, layers []layer, costs []cost) {
	for i, l := range layers {
		c, bare := costs[i], costs[0]
		b.Logf("%-30s %8.0f ns %8.0f ns of a core %6.1f allocations; to bare: %.2f, by the core %.2f", l.name,
			c.wall, c.cpu, c.allocs, bare.wall/c.wall, bare.cpu/c.cpu)
	}
	last := costs[len(costs)-1]
	b.ReportMetric(costs[0].wall/last.wall, "of-bare")
	b.ReportMetric(costs[0].cpu/last.cpu, "of-bare-by-core")
	b.ReportMetric(last.allocs, "allocs/request")
}

// BenchmarkHTTP measures what each layer of a fast reject costs, next to a
// bare Echo handler that reads the same body.
func BenchmarkHTTP(b *testing.B) {
	b.Run("in process", func(b *testing.B) {
		all := layers(b)
		all = all[:len(all)-1]
		for b.Loop() {
			w, r := newSink(), httptest.NewRequest(http.MethodPost, "/v1/check", nil)
			r.Header.Set("Content-Type", jsonType)
			body := bytes.NewReader([]byte(benchBody))
			r.Body, r.ContentLength = io.NopCloser(body), int64(len(benchBody))
			costs := inTurns(b, all, 21, 5000, func(i, n int) {
				for range n {
					body.Reset([]byte(benchBody))
					w.reset()
					all[i].handler.ServeHTTP(w, r)
					if w.status != http.StatusOK {
						b.Fatal(all[i].name, w.status)
					}
				}
			})
			table(b, all, costs)
		}
	})
	b.Run("loopback", func(b *testing.B) {
		all := layers(b)
		clients := make([][]*benchClient, len(all))
		for i, l := range all {
			clients[i] = benchClients(b, serveLayer(b, l), 16)
		}
		for b.Loop() {
			costs := inTurns(b, all, 15, 1600, func(i, n int) {
				var asking sync.WaitGroup
				for _, c := range clients[i] {
					asking.Go(func() {
						for range n / len(clients[i]) {
							if err := c.ask(); err != nil {
								b.Error(all[i].name, err)
								return
							}
						}
					})
				}
				asking.Wait()
			})
			table(b, all, costs)
		}
	})
}

// sink is a ResponseWriter that can be used again and keeps nothing.
type sink struct {
	header http.Header
	status int
}

func newSink() *sink { return &sink{header: http.Header{}} }

func (w *sink) reset()                      { clear(w.header); w.status = 0 }
func (w *sink) Header() http.Header         { return w.header }
func (w *sink) WriteHeader(status int)      { w.status = status }
func (w *sink) Write(p []byte) (int, error) { return len(p), nil }

// serveLayer serves a layer on a free port until the benchmark ends.
func serveLayer(b *testing.B, l layer) (addr string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	plain := &http.Server{Handler: l.handler}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if l.limits {
			_ = l.handler.(*Server).Serve(ctx, listener)
		} else {
			_ = plain.Serve(listener)
		}
	}()
	b.Cleanup(func() { stop(); _ = plain.Close(); <-done })
	return listener.Addr().String()
}

// benchClient asks over one connection that is kept. It costs little, so that
// what is measured is the server.
type benchClient struct {
	conn    net.Conn
	in      *bufio.Reader
	request []byte
}

func benchClients(b *testing.B, addr string, n int) (all []*benchClient) {
	for range n {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = conn.Close() })
		all = append(all, &benchClient{conn, bufio.NewReader(conn), []byte("POST /v1/check HTTP/1.1\r\nHost: gate\r\nUser-Agent: router\r\n" +
			"Content-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(benchBody)) + "\r\n\r\n" + benchBody)})
	}
	return all
}

// ask sends the check and reads the answer, all of it.
func (c *benchClient) ask() error {
	if _, err := c.conn.Write(c.request); err != nil {
		return err
	}
	length := 0
	for first := true; ; first = false {
		line, err := c.in.ReadSlice('\n')
		switch {
		case err != nil:
			return err
		case first && !bytes.HasPrefix(line, []byte("HTTP/1.1 200 ")):
			return io.ErrUnexpectedEOF
		case len(line) == 2:
			_, err = c.in.Discard(length)
			return err
		}
		if value, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return err
			}
		}
	}
}
