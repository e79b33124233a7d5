package archive

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOpenRefuses(t *testing.T) {
	newFakeS3(t) // for the environment
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ url, namespace, says string }{
		{"", "shop", "file:// or s3://"},
		{"gs://bucket", "shop", "file:// or s3://"},
		{"mem://", "shop", "file:// or s3://"},
		{"/var/lib/filters", "shop", "file:// or s3://"},
		{"file://", "shop", "absolute folder"},
		{"file:filters", "shop", "absolute folder"},
		{"file://filters", "shop", "absolute folder"},
		{"file://./filters", "shop", "absolute folder"},
		{"file://../filters", "shop", "absolute folder"},
		{"file://server/share", "shop", "absolute folder"},
		{"file:///var/lib/filters?create_dir=1", "shop", "no parameters"},
		{"file://" + file, "shop", "not a directory"},
		{"file://" + file + "/below", "shop", "not a directory"},
		{"s3://", "shop", "must name a bucket"},
		{"s3:bucket", "shop", "must name a bucket"},
		{"s3:///bucket", "shop", "must name a bucket"},
		{"s3://127.0.0.1:9000/bucket", "shop", "?endpoint="},
		{"s3://bucket/folder?region=eu-west-1", "shop", "?prefix="},
		{"s3://bucket", "shop", "?region="},
		{"s3://bucket?region=eu-west-1&colour=red", "shop", "colour"},
		{"s3://bucket?region=eu-west-1&use_path_style=perhaps", "shop", "use_path_style"},
		{"s3://bucket?region=%zz", "shop", "%zz"},
		{"s3://name:secret@bucket?region=eu-west-1", "shop", "a user, a password"},
		{"s3://name:secret@buc ket", "shop", "invalid character"},
		{"s3://bucket?region=eu-west-1#top", "shop", "#fragment"},
		{"s3://bucket?region=eu-west-1", "", "namespace"},
		{"s3://bucket?region=eu-west-1", "a/b", "namespace"},
		{"s3://bucket?region=eu-west-1", ".a", "namespace"},
	} {
		a, err := Open(t.Context(), c.url, c.namespace)
		if err == nil {
			_ = a.Close()
			t.Errorf("%q is opened", c.url)
			continue
		}
		if !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v, should say %q", c.url, err, c.says)
		}
	}
}

func TestOpenTakes(t *testing.T) {
	s := newFakeS3(t)
	dir := t.TempDir()
	for url, where := range map[string]string{
		"file://" + dir:                      dir,
		"file://localhost" + dir + "/":       dir,
		"file://" + dir + "/a/../b%20c":      dir + "/b c",
		s.url(""):                            "s3://snapshots",
		s.url("&prefix=/a/b/"):               "s3://snapshots/a/b",
		s.url("&prefix="):                    "s3://snapshots",
		s.url("&use_path_style=true"):        "s3://snapshots",
		s.url("&s3ForcePathStyle=true"):      "s3://snapshots",
		"s3://snapshots/?region=eu-west-1":   "s3://snapshots", // is not asked
		"s3://snapshots?region=eu-central-1": "s3://snapshots",
	} {
		a, err := Open(t.Context(), url, "shop")
		if err != nil {
			t.Errorf("%q: %v", url, err)
			continue
		}
		if a.where != where {
			t.Errorf("%q is opened at %q, not at %q", url, a.where, where)
		}
		if strings.Contains(url, s.server.URL) {
			if _, err := a.Generations(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}
}
