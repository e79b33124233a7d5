package boltstore

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/prefs"
)

// childEnv makes the test binary a process that writes to the file named.
const childEnv = "BOLTSTORE_TEST_CHILD"

// childWriters is how many users the child edits at the same time.
const childWriters = 8

// runChild says "open" once it has the file, and then edits users, one revision
// after the other, in a burst that ends only with the process. It says of each
// edit, after it was answered, whose and which it was; never before.
func runChild(path string) {
	s, err := Open(path)
	if err != nil {
		fmt.Fprintln(os.Stdout, err)
		os.Exit(1)
	}
	fmt.Fprintln(os.Stdout, "open")
	if _, err := os.Stdin.Read(make([]byte, 1)); err != nil { // the end: only the lock was wanted
		s.Close()
		return
	}
	var all sync.WaitGroup
	for i := range childWriters {
		all.Go(func() {
			user := sendgate.UserID(fmt.Sprint("user-", i))
			stored, err := s.Get(context.Background(), user)
			for revision := stored.Revision + 1; ; revision++ {
				r := record(user, revision)
				if err == nil {
					err = s.AppendChange(context.Background(), user, r.Pending[0])
				}
				if err == nil {
					err = s.Put(context.Background(), r, revision-1)
				}
				if err != nil {
					fmt.Fprintln(os.Stdout, err)
					os.Exit(1)
				}
				// One write of less than PIPE_BUF is never torn.
				fmt.Fprintf(os.Stdout, "%s %d\n", user, revision)
			}
		})
	}
	all.Wait()
}

// startChild starts one, and returns when it has the file open.
func startChild(t *testing.T, path string) (child *exec.Cmd, in io.WriteCloser, out *bufio.Reader) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	child = exec.CommandContext(ctx, os.Args[0])
	child.Env = append(os.Environ(), childEnv+"="+path)
	child.Stderr = os.Stderr
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	out = bufio.NewReader(stdout)
	if line, err := out.ReadString('\n'); line != "open\n" {
		t.Fatalf("the child says %q, %v", line, err)
	}
	return child, in, out
}

func TestKill(t *testing.T) {
	path := newPath(t)
	acknowledged := map[sendgate.UserID]int64{}
	for round := range 3 { // the later ones begin with a file that was left by a kill
		killInBurst(t, path, 100*(round+1), acknowledged)
		s := openAt(t, path)
		for user, revision := range acknowledged {
			stillThere(t, s, user, revision)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// killInBurst kills a child after so many acknowledgements, and notes all that
// it gave until it was dead.
func killInBurst(t *testing.T, path string, acks int, acknowledged map[sendgate.UserID]int64) {
	t.Helper()
	child, in, out := startChild(t, path)
	if _, err := in.Write([]byte{'\n'}); err != nil {
		t.Fatal(err)
	}
	n := 0
	for {
		line, err := out.ReadString('\n')
		if err != nil { // the end of the pipe; half a line is no acknowledgement
			break
		}
		user, number, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		var revision int64
		if _, err := fmt.Sscan(number, &revision); err != nil {
			t.Fatalf("the child says %q", line)
		}
		acknowledged[sendgate.UserID(user)] = max(acknowledged[sendgate.UserID(user)], revision)
		if n++; n == acks {
			if err := child.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := child.Wait(); err == nil || n < acks {
		t.Fatalf("the child ended with %v after %d acknowledgements", err, n)
	}
}

// stillThere checks all that an acknowledged edit left in the store. The child
// may have stored one more than it could say.
func stillThere(t *testing.T, s *Store, user sendgate.UserID, revision int64) {
	t.Helper()
	r, err := s.Get(t.Context(), user)
	if err != nil || r.Revision < revision || r.Revision > revision+1 {
		t.Fatalf("%q: revision %d was acknowledged; stored is %v, %v", user, revision, r, err)
	}
	changes, err := s.Changes(t.Context(), user, 0, int(revision)+10)
	if err != nil || int64(len(changes)) < r.Revision {
		t.Errorf("%q: %d audit entries of %d, %v", user, len(changes), r.Revision, err)
	}
	var since []time.Time
	err = s.Pending(t.Context(), prefs.PendingShard(user), func(e prefs.PendingEntry) error {
		if e.User == user {
			since = append(since, e.Since)
		}
		return nil
	})
	if err != nil || len(since) != 1 || !since[0].Equal(r.PendingSince()) {
		t.Errorf("%q: the pending index says %v, %v; the record %v", user, since, err, r.PendingSince())
	}
}

func TestLockHeldByAnotherProcess(t *testing.T) {
	path := newPath(t)
	child, in, _ := startChild(t, path)
	began := time.Now()
	s, err := Open(path)
	if err == nil {
		s.Close()
		t.Fatal("a file that another process has open was opened")
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("refusing it took %v", took)
	}
	if !strings.Contains(err.Error(), "another process has "+path+" open") {
		t.Errorf("the error says: %v", err)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := child.Wait(); err != nil {
		t.Fatal(err)
	}
	openAt(t, path)
}
