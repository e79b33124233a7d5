package catalogfile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/catalogfile"
	"github.com/sendgate/sendgate/yamlfile"
)

func files(t testing.TB, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s: %d files, %v", pattern, len(paths), err)
	}
	return paths
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestGoodCatalogs(t *testing.T) {
	for _, path := range files(t, "testdata/good/*.yaml") {
		if _, err := catalogfile.Load(path); err != nil {
			t.Error(err)
		}
	}
}

// Beside every bad catalog stands what it is refused with. Every rule has one.
func TestBadCatalogs(t *testing.T) {
	for _, path := range files(t, "testdata/bad/*.yaml") {
		want := strings.TrimRight(string(read(t, strings.TrimSuffix(path, ".yaml")+".txt")), "\n")
		catalog, err := catalogfile.Parse(filepath.Base(path), read(t, path))
		if catalog != nil || err == nil {
			t.Errorf("%s is taken", path)
		} else if got := err.Error(); got != want {
			t.Errorf("%s is refused with\n%s\nwant\n%s", path, got, want)
		}
		if _, loadErr := catalogfile.Load(path); loadErr == nil {
			t.Errorf("%s is loaded", path)
		}
	}
	if texts, yamls := files(t, "testdata/bad/*.txt"), files(t, "testdata/bad/*.yaml"); len(texts) != len(yamls) {
		t.Errorf("%d texts for %d files", len(texts), len(yamls))
	}
}

func TestFilesThatCannotBeRead(t *testing.T) {
	big := filepath.Join(t.TempDir(), "big.yaml")
	if err := os.WriteFile(big, []byte(strings.Repeat("#\n", yamlfile.MaxBytes)), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"testdata/none.yaml": "none.yaml", "testdata": "testdata", big: "at most 1048576 bytes"} {
		if _, err := catalogfile.Load(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestTheSample(t *testing.T) {
	c := catalogfile.Sample()
	if topics, pairs := c.Switchable(); topics != 9 || pairs != 36 {
		t.Errorf("%d topics and %d pairs can be switched", topics, pairs)
	}
	if again, err := catalogfile.Parse("again", catalogfile.SampleYAML()); err != nil || len(again.Channels()) != 4 {
		t.Errorf("%v, %v", again, err)
	}
	text := catalogfile.SampleYAML()
	text[0] = 'x'
	if catalogfile.SampleYAML()[0] == 'x' {
		t.Error("the sample can be changed")
	}
	promotions, _ := c.Topic("promotions")
	security, _ := c.Topic("security_alerts")
	if promotions.DefaultOn("sms") || !promotions.DefaultOn("email") || !security.Category.Essential {
		t.Errorf("%+v, %+v", promotions, security)
	}
}

func TestEveryMemberIsRead(t *testing.T) {
	c, err := catalogfile.Load("testdata/good/everything.yaml")
	if err != nil {
		t.Fatal(err)
	}
	cat, _ := c.Category("transactional")
	if cat.FilterHit != sendgate.HitReject || cat.InQuietHours != sendgate.QuietSuppress || cat.OnCap != sendgate.CapDefer ||
		cat.OnUnverifiable != sendgate.UnverifiableSuppress || !cat.UserCaps || cat.UserCapCeiling != 0 || len(cat.Caps) != 3 {
		t.Errorf("%+v", cat)
	}
	if first, last := cat.Caps[0], cat.Caps[2]; first.Limit != 0 || first.Window != time.Second || last.Window != 90*time.Minute || len(last.By) != 2 {
		t.Errorf("%+v", cat.Caps)
	}
	if push, app := len(cat.Allowed("push")), len(cat.Allowed("in.app")); push != 2 || app != 1 {
		t.Errorf("%d and %d windows", push, app)
	}
	topic, _ := c.Topic("order.shipped")
	if topic.DefaultOn("e-mail") || !topic.DefaultOn("push") || c.DefaultZone() == nil {
		t.Errorf("%+v", topic)
	}
}

// tooLong is far more than any text of this size takes to be read or refused.
const tooLong = 10 * time.Second

func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/good/*.yaml", "testdata/bad/*.yaml"} {
		for _, path := range files(f, pattern) {
			f.Add(read(f, path))
		}
	}
	f.Add(catalogfile.SampleYAML())
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<14 {
			return
		}
		began := time.Now()
		catalog, err := catalogfile.Parse("c.yaml", data)
		if took := time.Since(began); took > tooLong {
			t.Errorf("it took %v", took)
		}
		if (catalog == nil) == (err == nil) {
			t.Fatalf("%v, %v", catalog, err)
		}
		if err != nil && !strings.HasPrefix(err.Error(), "c.yaml:") {
			t.Errorf("the error does not name the file: %v", err)
		}
	})
}

// What is nested or repeated as deep as a file is long is refused before it
// costs anything.
func TestDeepFilesAreRefusedQuickly(t *testing.T) {
	for _, part := range []string{"[", "{a: ", "- ", "? ", "&a ", "*a ", "!", "a:\n", "\"", "a: |\n", "- - - - -\n", "-\n", ": ", "a: ", "[]", "\x00", "%", "#", "'", "<<: ",
		"[]\n ", "\"\"\n  ", ": \n", "{}\n", "[a\n", "a: b\n  ", "a:\n  b\n", ",\n", "]\n", "? a\n", "\"\n", "- a\n  ", "[\n]\n", "\r", "\u2028"} {
		data := []byte("channels: \n  " + strings.Repeat(part, 100_000/len(part)))
		began := time.Now()
		_, err := catalogfile.Parse("c.yaml", data)
		if took := time.Since(began); err == nil || took > tooLong {
			t.Errorf("%q again and again took %v, taken: %v", part, took, err == nil)
		}
	}
}
