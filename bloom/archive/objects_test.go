package archive

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// large is more than is uploaded in one request.
const large = 18 << 20

func TestOneOfManyMultipartUploads(t *testing.T) {
	s := newFakeS3(t)
	oneWins(t, s.place(""), 3, large)
	if s.completed.Load() != 1 || s.refused.Load() != 2 || s.aborted.Load() != 2 {
		t.Errorf("%d completed, %d refused, %d aborted", s.completed.Load(), s.refused.Load(), s.aborted.Load())
	}
}

func TestFailingWriteAbortsMultipartUpload(t *testing.T) {
	s := newFakeS3(t)
	p := s.place("")
	a := p.open(t, "shop")
	broken := errors.New("broken")
	err := a.Publish(t.Context(), 5, func(w io.Writer) error {
		return errors.Join(second(w.Write(make([]byte, large))), broken)
	})
	if !errors.Is(err, broken) {
		t.Errorf("%v, not the writer's own error", err)
	}
	if got := p.keys(t); len(got) != 0 || s.completed.Load() != 0 || s.aborted.Load() != 1 {
		t.Errorf("the bucket has %q, %d uploads are completed and %d aborted", got, s.completed.Load(), s.aborted.Load())
	}
}

func (s *fakeS3) answerNextPut(answer func(w http.ResponseWriter, r *http.Request)) {
	s.onPut.Store(&answer)
}

// TestLostAnswer has the client send a request again that had succeeded. What
// it is refused for then is its own object.
func TestLostAnswer(t *testing.T) {
	s := newFakeS3(t)
	p := s.place("")
	a := p.open(t, "shop")
	s.answerNextPut(func(w http.ResponseWriter, r *http.Request) {
		s.next.ServeHTTP(httptest.NewRecorder(), r)
		answerError(w, http.StatusInternalServerError, "InternalError")
	})
	mustPublish(t, a, 5, "five")
	if got := mustFetch(t, a, 5); got != "five" {
		t.Errorf("fetched %q", got)
	}
}

func TestConflict(t *testing.T) {
	for name, theirs := range map[string]string{"the other wins": "theirs", "the other fails": ""} {
		t.Run(name, func(t *testing.T) {
			s := newFakeS3(t)
			p := s.place("")
			a := p.open(t, "shop")
			s.answerNextPut(func(w http.ResponseWriter, _ *http.Request) {
				if theirs != "" {
					p.put(t, a.names.key(5), theirs)
				}
				answerError(w, http.StatusConflict, conflict)
			})
			err := a.Publish(t.Context(), 5, func(w io.Writer) error { return second(w.Write([]byte("ours"))) })
			if err == nil || errors.Is(err, ErrTaken) != (theirs != "") {
				t.Errorf("published with %v", err)
			}
			if theirs == "" {
				mustPublish(t, a, 5, "again")
			}
		})
	}
}

func TestServerRefuses(t *testing.T) {
	s := newFakeS3(t)
	a := s.place("").open(t, "shop")
	s.answerNextPut(func(w http.ResponseWriter, _ *http.Request) {
		answerError(w, http.StatusForbidden, "AccessDenied")
	})
	err := a.Publish(t.Context(), 5, func(w io.Writer) error { return second(w.Write([]byte("five"))) })
	if err == nil || errors.Is(err, ErrTaken) || !strings.Contains(err.Error(), "AccessDenied") {
		t.Errorf("published with %v", err)
	}
	if got := generations(t, a); !slices.Equal(got, nil) {
		t.Errorf("the generations are %v", got)
	}
}

func TestNoSuchBucket(t *testing.T) {
	s := newFakeS3(t)
	a := testPlace{url: strings.Replace(s.url(""), testBucket, "nowhere", 1)}.open(t, "shop")
	for call, err := range map[string]error{
		"list":    second(a.Generations(t.Context())),
		"publish": a.Publish(t.Context(), 5, func(io.Writer) error { return nil }),
		"prune":   a.Prune(t.Context(), 1),
	} {
		if err == nil || errors.Is(err, ErrTaken) || !strings.Contains(err.Error(), "s3://nowhere") ||
			!strings.Contains(err.Error(), "NoSuchBucket") {
			t.Errorf("%s: %v", call, err)
		}
	}
}
