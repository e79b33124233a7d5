package archive

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// publishEnv makes the test binary publish generation 7 at its URL, slowly.
const publishEnv = "ARCHIVE_TEST_PUBLISH"

func TestMain(m *testing.M) {
	if url := os.Getenv(publishEnv); url != "" {
		_, _ = io.WriteString(os.Stdout, publishSlowly(url)+"\n")
		return
	}
	goleak.VerifyTestMain(m)
}

// publishSlowly writes one half, says so, and writes the other when its input
// ends.
func publishSlowly(url string) string {
	ctx := context.Background()
	a, err := Open(ctx, url, "shop")
	if err != nil {
		return err.Error()
	}
	half := make([]byte, 1<<20)
	err = a.Publish(ctx, 7, func(w io.Writer) error {
		_, err := w.Write(half)
		_, _ = io.WriteString(os.Stdout, "half\n")
		_, _ = io.Copy(io.Discard, os.Stdin)
		return errors.Join(err, second(w.Write(half)))
	})
	switch {
	case err == nil:
		return "published"
	case errors.Is(err, ErrTaken):
		return "taken"
	default:
		return err.Error()
	}
}

// publisher is another process that has written one half.
type publisher struct {
	cmd *exec.Cmd
	in  io.Closer // closed for the other half
	out *bufio.Reader
}

func startPublisher(t *testing.T, url string) *publisher {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), publishEnv+"="+url)
	cmd.Stderr = os.Stderr
	in, errIn := cmd.StdinPipe()
	out, errOut := cmd.StdoutPipe()
	if err := errors.Join(errIn, errOut, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	p := &publisher{cmd, in, bufio.NewReader(out)}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // an error says that it has ended
		_ = cmd.Wait()
	})
	if line := p.line(t); line != "half" {
		t.Fatalf("the other process says %q", line)
	}
	return p
}

func (p *publisher) line(t *testing.T) string {
	t.Helper()
	line, err := p.out.ReadString('\n')
	if err != nil {
		t.Error(err)
	}
	return strings.TrimSpace(line)
}

func TestKilledPublisher(t *testing.T) {
	place := folderPlace(t)
	a := place.open(t, "shop")
	p := startPublisher(t, place.url)
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.cmd.Wait()
	if got := generations(t, a); len(got) != 0 {
		t.Errorf("the generations are %v", got)
	}
	left := place.keys(t)
	if len(left) != 1 || !stageName.MatchString(left[0]) {
		t.Fatalf("it was killed in the middle and left %q", left)
	}
	if err := a.Fetch(t.Context(), 7, io.Discard); !errors.Is(err, ErrGone) {
		t.Errorf("fetched with %v", err)
	}

	mustPublish(t, a, 7, "seven")
	if got := generations(t, a); !slices.Equal(got, []int64{7}) {
		t.Errorf("the generations are %v", got)
	}
	if got := place.keys(t); !slices.Contains(got, left[0]) {
		t.Error("a stage that may be alive was removed")
	}
	stage := filepath.Join(a.where, left[0])
	old := time.Now().Add(-2 * abandonedAfter)
	if err := os.Chtimes(stage, old, old); err != nil {
		t.Fatal(err)
	}
	place.put(t, ".foreign.part", "")
	if err := os.Chtimes(filepath.Join(a.where, ".foreign.part"), old, old); err != nil {
		t.Fatal(err)
	}
	mustPublish(t, a, 8, "eight")
	want := []string{".foreign.part", "shop-00000000000000000007.filter", "shop-00000000000000000008.filter"}
	if got := place.keys(t); !slices.Equal(got, want) {
		t.Errorf("the folder has %q", got)
	}
}

func TestOneOfManyProcesses(t *testing.T) {
	const many = 3
	place := folderPlace(t)
	a := place.open(t, "shop")
	processes := make([]*publisher, many)
	for i := range processes {
		processes[i] = startPublisher(t, place.url)
	}
	for _, p := range processes {
		_ = p.in.Close()
	}
	said := make([]string, many)
	for i, p := range processes {
		said[i] = p.line(t)
	}
	slices.Sort(said)
	if !slices.Equal(said, []string{"published", "taken", "taken"}) {
		t.Errorf("they say %q", said)
	}
	if got := mustFetch(t, a, 7); len(got) != 2<<20 {
		t.Errorf("%d bytes were published", len(got))
	}
	if got := place.keys(t); len(got) != 1 {
		t.Errorf("the folder has %q", got)
	}
}

// TestListWhilePruning lists a folder whose files come and go.
func TestListWhilePruning(t *testing.T) {
	place := folderPlace(t)
	a := place.open(t, "shop")
	mustPublish(t, a, 1, "x")
	var pruning sync.WaitGroup
	pruning.Go(func() {
		for generation := range int64(100) {
			mustPublish(t, a, generation+2, "x")
			if err := a.Prune(t.Context(), 1); err != nil {
				t.Error(err)
			}
		}
	})
	last := int64(1)
	for last < 101 && !t.Failed() {
		entries, err := a.Generations(t.Context())
		if err != nil || len(entries) == 0 || entries[0].Generation < last {
			t.Errorf("%v, %v after generation %d", entries, err, last)
			break
		}
		last = entries[0].Generation
	}
	pruning.Wait()
}

func TestFolderBehindSymbolicLink(t *testing.T) {
	real, link := t.TempDir(), filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	a := testPlace{url: "file://" + link}.open(t, "shop")
	mustPublish(t, a, 5, "five")
	if got := generations(t, a); !slices.Equal(got, []int64{5}) {
		t.Errorf("the generations are %v", got)
	}
}

// TestFolderGone sees to it that a folder that is lost, or never mounted again,
// is not taken for an empty one.
func TestFolderGone(t *testing.T) {
	place := folderPlace(t)
	a := place.open(t, "shop")
	mustPublish(t, a, 5, "five")
	if err := os.RemoveAll(a.where); err != nil {
		t.Fatal(err)
	}
	for call, err := range map[string]error{
		"list":    second(a.Generations(t.Context())),
		"publish": a.Publish(t.Context(), 6, func(io.Writer) error { return nil }),
		"prune":   a.Prune(t.Context(), 1),
	} {
		if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), a.where) {
			t.Errorf("%s: %v", call, err)
		}
	}
}

// TestReadOnlyFolder is a gate's view of a folder that only builders write.
func TestReadOnlyFolder(t *testing.T) {
	place := folderPlace(t)
	mustPublish(t, place.open(t, "shop"), 5, "five")
	reader := place.open(t, "shop")
	if err := os.Chmod(reader.where, 0o500); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(reader.where, 0o700) })
	if got := mustFetch(t, place.open(t, "shop"), 5); got != "five" {
		t.Errorf("fetched %q", got)
	}
}

// TestUnwritableFolder has a file stand where the folder was, into which nobody
// writes, root included.
func TestUnwritableFolder(t *testing.T) {
	place := folderPlace(t)
	a := place.open(t, "shop")
	mustPublish(t, a, 5, "five")
	if err := errors.Join(os.RemoveAll(a.where), os.WriteFile(a.where, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	below, err := Open(t.Context(), place.url+"/below", "shop")
	if err == nil {
		_ = below.Close()
	}
	for call, err := range map[string]error{
		"open below": err,
		"list":       second(a.Generations(t.Context())),
		"publish":    a.Publish(t.Context(), 6, func(io.Writer) error { return nil }),
		"prune":      a.Prune(t.Context(), 1),
	} {
		if !errors.Is(err, syscall.ENOTDIR) || errors.Is(err, ErrTaken) || !strings.Contains(err.Error(), filepath.Base(a.where)) {
			t.Errorf("%s: %v", call, err)
		}
	}
}

// TestUndeletable has a folder with something in it stand in the place of a
// generation, which nobody deletes as if it were a file.
func TestUndeletable(t *testing.T) {
	place := folderPlace(t)
	a := place.open(t, "shop")
	place.put(t, a.names.key(5)+"/file", "")
	if err := a.remove(t.Context(), a.names.key(5)); err == nil {
		t.Error("it was deleted")
	}
	if got := place.keys(t); !slices.Equal(got, []string{a.names.key(5)}) {
		t.Errorf("the folder has %q", got)
	}
}

// TestPipe has a pipe stand in the place of a generation, which would keep its
// reader for as long as nobody writes.
func TestPipe(t *testing.T) {
	a := folderPlace(t).open(t, "shop")
	pipe := filepath.Join(a.where, a.names.key(5))
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	fetched := make(chan error, 1)
	go func() { fetched <- a.Fetch(t.Context(), 5, io.Discard) }()
	select {
	case err := <-fetched:
		if err == nil || !strings.Contains(err.Error(), "is no file") {
			t.Errorf("fetched with %v", err)
		}
	case <-time.After(10 * time.Second):
		if f, err := os.OpenFile(pipe, os.O_RDWR, 0); err == nil { // lets the reader go
			_ = f.Close()
		}
		t.Errorf("a fetch ends only with the pipe: %v", <-fetched)
	}
}

// TestClaim has the cases of a hard link, one of which only NFS brings about.
func TestClaim(t *testing.T) {
	dir := t.TempDir()
	ours, theirs, name := filepath.Join(dir, "ours"), filepath.Join(dir, "theirs"), filepath.Join(dir, "name")
	if err := errors.Join(os.WriteFile(ours, nil, 0o600), os.WriteFile(theirs, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := claim(ours, name); err != nil {
		t.Error(err)
	}
	if err := claim(ours, name); err != nil {
		t.Errorf("asked for again: %v", err)
	}
	if err := claim(theirs, name); !errors.Is(err, ErrTaken) {
		t.Errorf("%v, not ErrTaken", err)
	}
	if err := claim(filepath.Join(dir, "none"), filepath.Join(dir, "new")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a stage that was removed: %v", err)
	}
}
