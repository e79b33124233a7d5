package api

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// BenchmarkBatch measures a batch of as many checks as there may be, apart from
// what Redis takes.
func BenchmarkBatch(b *testing.B) {
	st, g, _ := newGated(b)
	close(g.release)
	data := []byte(fullBatch())
	body, w := bytes.NewReader(data), newSink()
	r := httptest.NewRequest(http.MethodPost, "/v1/check/batch", nil)
	r.Header.Set("Content-Type", jsonType)
	r.Body, r.ContentLength = io.NopCloser(body), int64(len(data))
	b.ReportAllocs()
	for b.Loop() {
		body.Reset(data)
		w.reset()
		if st.server.ServeHTTP(w, r); w.status != http.StatusOK {
			b.Fatal(w.status)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/maxBatch, "ns/check")
}
