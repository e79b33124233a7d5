package archive

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// testPlace is an empty place that archives are opened at, and looked into
// without them.
type testPlace struct {
	url  string
	put  func(t *testing.T, name, content string)
	keys func(t *testing.T) []string // of snapshots and anything else that is seen
}

// onEveryPlace runs a test on each kind of place.
func onEveryPlace(t *testing.T, test func(t *testing.T, p testPlace)) {
	t.Run("file", func(t *testing.T) { test(t, folderPlace(t)) })
	t.Run("s3", func(t *testing.T) { test(t, newFakeS3(t).place("")) })
	t.Run("s3 folder", func(t *testing.T) { test(t, newFakeS3(t).place("filters/eu")) })
}

func (p testPlace) open(t *testing.T, namespace string) *Archive {
	t.Helper()
	a, err := Open(t.Context(), p.url, namespace)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return a
}

func folderPlace(t *testing.T) testPlace {
	dir := filepath.Join(t.TempDir(), "made", "when opened")
	return testPlace{
		url: "file://" + strings.ReplaceAll(dir, " ", "%20"),
		put: func(t *testing.T, name, content string) {
			t.Helper()
			file := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		},
		keys: func(t *testing.T) []string { return fileNames(t, dir) },
	}
}

func fileNames(t *testing.T, dir string) (names []string) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		names = append(names, f.Name())
	}
	return names
}

const testBucket = "snapshots"

// fakeS3 is gofakes3 in this process, which honours If-None-Match when an
// object is put but not when a multipart upload is completed; S3 honours both.
// So that condition is kept here, in front of it.
type fakeS3 struct {
	backend *s3mem.Backend
	server  *httptest.Server
	next    http.Handler

	completing sync.Mutex
	completed  atomic.Int64 // multipart uploads that ended well
	refused    atomic.Int64 // ... that came second
	aborted    atomic.Int64 // ... that were given up

	// onPut, if set, answers the next PUT of a whole object in the server's
	// place.
	onPut atomic.Pointer[func(w http.ResponseWriter, r *http.Request)]
}

func newFakeS3(t *testing.T) *fakeS3 {
	t.Helper()
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_SESSION_TOKEN": "",
		"AWS_REGION": "", "AWS_DEFAULT_REGION": "", "AWS_PROFILE": "", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull,
	} {
		t.Setenv(name, value)
	}
	s := &fakeS3{backend: s3mem.New()}
	if err := s.backend.CreateBucket(testBucket); err != nil {
		t.Fatal(err)
	}
	s.next = gofakes3.New(s.backend, gofakes3.WithLogger(gofakes3.DiscardLog())).Server()
	s.server = httptest.NewServer(s)
	t.Cleanup(s.server.Close)
	return s
}

func (s *fakeS3) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	upload := r.URL.Query().Get("uploadId") != ""
	switch {
	case r.Method == http.MethodPut && !upload:
		if answer := s.onPut.Swap(nil); answer != nil {
			(*answer)(w, r)
			return
		}
	case r.Method == http.MethodPost && upload:
		s.complete(w, r)
		return
	case r.Method == http.MethodDelete && upload:
		s.aborted.Add(1)
	}
	s.next.ServeHTTP(w, r)
}

func (s *fakeS3) complete(w http.ResponseWriter, r *http.Request) {
	s.completing.Lock()
	defer s.completing.Unlock()
	key := strings.TrimPrefix(r.URL.Path, "/"+testBucket+"/")
	_, err := s.backend.HeadObject(testBucket, key)
	if err == nil && r.Header.Get("If-None-Match") == "*" {
		s.refused.Add(1)
		answerError(w, http.StatusPreconditionFailed, "PreconditionFailed")
		return
	}
	s.completed.Add(1)
	s.next.ServeHTTP(w, r)
}

// answerError answers as S3 does.
func answerError(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, "<Error><Code>"+code+"</Code><Message>so it is said</Message></Error>")
}

func (s *fakeS3) put(t *testing.T, key, content string) {
	t.Helper()
	_, err := s.backend.PutObject(testBucket, key, map[string]string{},
		bytes.NewReader([]byte(content)), int64(len(content)), nil)
	if err != nil {
		t.Fatal(err)
	}
}

func (s *fakeS3) url(params string) string {
	return "s3://" + testBucket + "?region=eu-west-1&endpoint=" + s.server.URL + params
}

func (s *fakeS3) place(folder string) testPlace {
	p := testPlace{url: s.url("")}
	below := ""
	if folder != "" {
		p.url, below = s.url("&prefix="+folder), folder+"/"
	}
	p.put = func(t *testing.T, name, content string) { s.put(t, below+name, content) }
	p.keys = func(t *testing.T) (keys []string) {
		t.Helper()
		list, err := s.backend.ListBucket(testBucket, nil, gofakes3.ListBucketPage{})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range list.Contents {
			keys = append(keys, strings.TrimPrefix(o.Key, below))
		}
		return keys
	}
	return p
}
