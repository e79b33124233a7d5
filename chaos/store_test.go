package chaos_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"
)

func storeUnreachable(r *rig) {
	r.eachGate(func(g *gate) { g.store.refuse() })
	r.lasts(2500 * time.Millisecond)
	r.eachGate(func(g *gate) { g.store.heal() })
}

func storeBlackHoled(r *rig) {
	defer r.alone(int32(r.victim().index))()
	r.victim().store.blackHole()
	r.lasts(2500 * time.Millisecond)
	r.victim().store.heal()
}

func storeSlow(r *rig) {
	r.eachGate(func(g *gate) { g.store.slow(100 * time.Millisecond) })
	r.lasts(3 * time.Second)
	r.eachGate(func(g *gate) { g.store.heal() })
}

// storeThrottling has the store refuse a share of what gates ask of it, and
// give an error in answer to another share, which it has done all the same.
func storeThrottling(r *rig) {
	target, err := url.Parse(r.dynamo.Endpoint())
	if err != nil {
		r.t.Fatal(err)
	}
	store := httputil.NewSingleHostReverseProxy(target)
	calls := &http.Transport{MaxIdleConnsPerHost: 64}
	store.Transport = calls
	throttle := httptest.NewServer(throttling(store))
	r.eachGate(func(g *gate) { g.store.lead(throttle.Listener.Addr().String()) })
	r.lasts(4 * time.Second)
	r.eachGate(func(g *gate) { g.store.lead(r.dynamo.Addr()) })
	throttle.Close()
	calls.CloseIdleConnections()
}

// throttling refuses one call in four, and does not say of one in eight that it
// was done.
func throttling(store http.Handler) http.Handler {
	var mu sync.Mutex
	random := dice(1<<21, 0)
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		mu.Lock()
		n := random.IntN(8)
		mu.Unlock()
		status, kind := http.StatusBadRequest, "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException"
		switch n {
		case 0, 1:
		case 2:
			store.ServeHTTP(httptest.NewRecorder(), request)
			status, kind = http.StatusInternalServerError, "com.amazonaws.dynamodb.v20120810#InternalServerError"
		default:
			store.ServeHTTP(w, request)
			return
		}
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{"__type":"`+kind+`","message":"too much is asked"}`)
	})
}
