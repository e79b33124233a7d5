package api

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/sendgate/sendgate"
)

// gated are the records of users who have said nothing. It waits, before it
// reads the record of the user `last`, until it is released.
type gated struct{ release chan struct{} }

func (g gated) Read(ctx context.Context, asks []sendgate.RecordAsk) []sendgate.RecordAnswer {
	answers := make([]sendgate.RecordAnswer, len(asks))
	for i, a := range asks {
		answers[i].Preferences = &sendgate.Preferences{}
		if a.User == "last" {
			select {
			case <-g.release:
			case <-ctx.Done():
			}
		}
	}
	return answers
}

func (gated) Consent(sendgate.UserID) (c sendgate.Consent, exact, known bool) { return c, false, false }

func (gated) Judge(_ context.Context, asks []sendgate.CapAsk, _ int) []sendgate.CapAnswer {
	answers := make([]sendgate.CapAnswer, len(asks))
	for i := range answers {
		answers[i].Admitted = true
	}
	return answers
}

func (gated) Settle(context.Context, []sendgate.CapReport) []sendgate.CapReceipt { return nil }

// countedDecisions counts what was decided.
type countedDecisions struct {
	noObserver
	decided int
}

func (c *countedDecisions) Decided(*sendgate.Check, *sendgate.Decision, sendgate.Mode) { c.decided++ }

// newGated is a stack whose gate is gated.
func newGated(t testing.TB) (*stack, gated, *countedDecisions) {
	g, counted := gated{make(chan struct{})}, &countedDecisions{}
	gate := sendgate.NewGate(sendgate.Options{Catalog: testCatalog(t), Overlay: g, Records: g, Caps: g, Observer: counted})
	return &stack{t: t, server: New(Options{Gate: gate})}, g, counted
}

// fullBatch is a batch of as many checks as there may be. Those of users whose
// number can be divided by 7 are wrong; the last one is of the user `last`.
func fullBatch() string {
	checks := make([]string, maxBatch)
	for i := range checks {
		user := "u" + strconv.Itoa(i)
		switch {
		case i == maxBatch-1:
			user = "last"
		case i%7 == 0:
			user = ""
		case i%7 == 1:
			checks[i] = checkOf(user, "nowhere", "push")
			continue
		case i%7 == 2:
			checks[i] = `{"user_id":"` + user + `"}`
			continue
		}
		checks[i] = checkOf(user, "promotions", "push")
	}
	return `{"checks":[` + strings.Join(checks, ",") + `]}`
}

// demandFullBatch holds an answer against fullBatch.
func demandFullBatch(t *testing.T, a *answer) {
	t.Helper()
	decisions := a.ok()["decisions"].([]any)
	if len(decisions) != maxBatch {
		t.Fatalf("%d decisions", len(decisions))
	}
	codes := map[int]sendgate.Code{0: sendgate.CodeInvalidUserID, 1: sendgate.CodeUnknownTopic, 2: sendgate.CodeMissingField}
	for i, d := range decisions {
		d := d.(map[string]any)
		code, wrong := codes[i%7]
		switch fault, _ := d["error"].(map[string]any); {
		case i == maxBatch-1:
			wrong = false
		case wrong && fault["code"] != string(code):
			t.Fatalf("%d: %v, want %s", i, d, code)
		}
		if !wrong && (d["verdict"] != "allow" || i < maxBatch-1 && d["user_id"] != "u"+strconv.Itoa(i)) {
			t.Fatalf("%d: %v", i, d)
		}
	}
}

// The first answers of a batch are there before the last check is decided.
func TestBatchesAreStreamed(t *testing.T) {
	st, g, _ := newGated(t)
	addr, _ := st.serving()
	resp, err := http.Post("http://"+addr+"/v1/check/batch", jsonType, strings.NewReader(fullBatch()))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	in := bufio.NewReader(resp.Body)
	var first []byte
	for n := 0; n < 500; n++ { // of 1,000 items, while the last one is held
		item, err := in.ReadBytes('}')
		if err != nil {
			t.Fatal(err)
		}
		first = append(first, item...)
	}
	close(g.release)
	rest, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	demandFullBatch(t, &answer{t, resp.StatusCode, resp.Header, append(first, rest...)})
	http.DefaultClient.CloseIdleConnections()
}

// parts is a ResponseWriter that notes what is written at once, and fails after
// so many times if that is more than 0.
type parts struct {
	*httptest.ResponseRecorder
	sizes []int
	fails int
}

func (p *parts) Write(data []byte) (int, error) {
	p.sizes = append(p.sizes, len(data))
	if len(p.sizes) == p.fails {
		return 0, io.ErrClosedPipe
	}
	return p.ResponseRecorder.Write(data)
}

// Of the answer to a batch no more is held than what a part of it takes.
func TestABatchIsHeldInParts(t *testing.T) {
	st, g, counted := newGated(t)
	close(g.release)
	post := func(body string, fails int) *parts {
		r := httptest.NewRequest(http.MethodPost, "/v1/check/batch", strings.NewReader(body))
		r.Header.Set("Content-Type", jsonType)
		w := &parts{ResponseRecorder: httptest.NewRecorder(), fails: fails}
		st.server.ServeHTTP(w, r)
		return w
	}
	w := post(fullBatch(), 0)
	demandFullBatch(t, &answer{t, w.Code, w.Header(), w.Body.Bytes()})
	for _, size := range w.sizes {
		if size > w.Body.Len()/5 {
			t.Errorf("%d of %d bytes at once", size, w.Body.Len())
		}
	}
	if w.Header().Get("Content-Length") != "" || !w.Flushed {
		t.Errorf("%v", w.Header())
	}
	// One that is decided at once has a length.
	small := fmt.Sprintf(`{"checks":[%s,{}]}`, checkOf("u", "promotions", "push"))
	if w = post(small, 0); len(w.sizes) != 1 || w.Header().Get("Content-Length") != strconv.Itoa(w.Body.Len()) {
		t.Errorf("%v %v", w.sizes, w.Header())
	}
	// For a caller who is gone no more is decided.
	counted.decided = 0
	if post(fullBatch(), 2); counted.decided == 0 || counted.decided > maxBatch/4 {
		t.Errorf("%d were decided for nobody", counted.decided)
	}
}

// A batch that is wrong as a whole is refused before anything is sent.
func TestAWrongBatchIsRefusedAsAWhole(t *testing.T) {
	st, g, counted := newGated(t)
	close(g.release)
	body := strings.TrimSuffix(fullBatch(), "}") + `,"take":3}`
	st.do("POST", "/v1/check/batch", body).refused(422, sendgate.CodeInvalidField, "take")
	if counted.decided > 0 {
		t.Errorf("%d were decided", counted.decided)
	}
}

// A batch that ends in a panic does not look like a whole one.
func TestABatchThatPanics(t *testing.T) {
	st, g, _ := newGated(t)
	close(g.release)
	panics := sendgate.NewGate(sendgate.Options{Catalog: testCatalog(t), Overlay: g, Records: g, Caps: g, Observer: &panicsLate{}})
	st.server = New(Options{Gate: panics})
	addr, _ := st.serving()
	resp, err := http.Post("http://"+addr+"/v1/check/batch", jsonType, strings.NewReader(fullBatch()))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if data, err := io.ReadAll(resp.Body); err == nil {
		t.Errorf("a whole answer of %d bytes", len(data))
	}
	http.DefaultClient.CloseIdleConnections()
}

// panicsLate panics at the 300th decision.
type panicsLate struct{ countedDecisions }

func (p *panicsLate) Decided(*sendgate.Check, *sendgate.Decision, sendgate.Mode) {
	if p.decided++; p.decided == 300 {
		panic("late")
	}
}
