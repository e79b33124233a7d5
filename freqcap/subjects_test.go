package freqcap_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/freqcap"
	"github.com/sendgate/sendgate/internal/redistest"
	"github.com/sendgate/sendgate/keyspace"
)

// ofHousehold makes a cap of a household's notifications.
func ofHousehold(id string, window time.Duration, limit int) sendgate.BoundCap {
	c := capOf(window, limit)
	c.Subject, c.SubjectID = "household_id", id
	return c
}

// testSubjects has people of one household share a cap beside their own.
func testSubjects(t *testing.T, client redis.UniversalClient) {
	b := onRedisClock(t, client)
	own, home := capOf(time.Hour, 2), ofHousehold("h", time.Hour, 3)
	for i, c := range []struct {
		user sendgate.UserID
		want bool
	}{{"ann", true}, {"ann", true}, {"ann", false}, {"ben", true}, {"ben", false}, {"cat", false}} {
		if got := b.goes(ask(c.user, fmt.Sprint("n", i), "push", own, home)); got != c.want {
			t.Errorf("ask %d, of %s: %t", i, c.user, got)
		}
	}
	used := func(user sendgate.UserID) string {
		t.Helper()
		a := b.judge(user, "x", false, own, home)
		return fmt.Sprint(a.Caps[0].Used, " ", a.Caps[1].Used)
	}
	b.wants("ann", "2 3", used("ann"))
	b.wants("ben", "1 3", used("ben"))
	b.wants("cat, who was denied at home", "0 3", used("cat"))
	for _, want := range []string{"given_back", "unchanged"} { // the report does not name the household
		b.wants("failed", want, b.report(sendgate.CapReport{User: "ann", NotificationID: "n0", Channel: "push", Fate: sendgate.Failed}))
	}
	b.wants("ann", "1 2", used("ann"))
	if !b.goes(ask("cat", "n6", "push", own, home)) {
		t.Error("what ann gave back is not there for cat")
	}
	if !b.goes(ask("cat", "n6", "push", own, home)) || !b.goes(ask("cat", "n6", "push", own)) {
		t.Error("asked again")
	}
	b.wants("cat", "1 3", used("cat"))
	usage, err := b.Usage(context.Background(), "", "cat")
	if err != nil || len(usage.Counts) != 2 || usage.Counts[1].SubjectID != "h" || usage.Holds != 0 {
		t.Errorf("%+v, %v", usage, err)
	}
}

// Somebody who is not signed in is counted by the device, more loosely.
func testADeviceOfSomebodyUnknown(t *testing.T, client redis.UniversalClient) {
	b, device := onRedisClock(t, client), capOf(time.Hour, 3)
	device.Subject, device.SubjectID = "device_id", "d"
	var asks []sendgate.CapAsk
	for i := range 6 {
		asks = append(asks, ask(sendgate.UserID(fmt.Sprint("session", i)), "n", "push", device))
	}
	for i, a := range b.Judge(context.Background(), asks, 0) {
		if a.Err != nil || a.Admitted != (i < 3) {
			t.Errorf("ask %d: %+v", i, a)
		}
	}
}

// A list of one user, of which some count for a household as well: slots are
// given in its order, also where only so many are to be taken.
func testSubjectsInAList(t *testing.T, client redis.UniversalClient) {
	own := capOf(time.Hour, 4)
	for take, want := range map[int]string{0: "yynynynn", 2: "yyn-n-n-"} {
		b, home := onRedisClock(t, client), ofHousehold("h", time.Hour, 1)
		var asks []sendgate.CapAsk
		for i := range 8 {
			a := ask("u", fmt.Sprint("n", i), "push", own)
			if i%2 == 0 {
				a.Caps = append(a.Caps, home)
			}
			asks = append(asks, a)
		}
		got := ""
		for _, a := range b.Judge(context.Background(), asks, take) {
			switch {
			case a.Err != nil:
				t.Fatal(a.Err)
			case a.Admitted:
				got += "y"
			case a.Passed:
				got += "-"
			default:
				got += "n"
			}
		}
		if got != want {
			t.Errorf("take %d: %s, want %s", take, got, want)
		}
	}
}

// Reports reach a household by the caps that they name, and by what the user's
// record says of it.
func testReportsOfAHousehold(t *testing.T, client redis.UniversalClient) {
	b, own, home := onTestClock(t, client), capOf(time.Hour, 5), ofHousehold("h", time.Hour, 5)
	reports := func(want string, used string, id string, fate sendgate.Fate, caps ...sendgate.BoundCap) {
		t.Helper()
		b.wants(fmt.Sprint(id, " ", fate), want, b.report(sendgate.CapReport{User: "u", NotificationID: id, Channel: "push", Fate: fate, Caps: caps}))
		b.wants("used", used, fmt.Sprint(b.taken(own), b.takenAtHome(home)))
	}
	b.both(1_000_000)
	reports("settled", "1 1", "n1", sendgate.Delivered, own, home) // nobody had asked
	reports("unchanged", "1 1", "n1", sendgate.Delivered, own, home)
	b.goes(heldFor(time.Minute, ask("u", "n2", "push", own, home)))
	b.both(1_061_000)
	b.wants("used once the hold is over", "1 1", fmt.Sprint(b.taken(own), b.takenAtHome(home)))
	reports("settled", "2 2", "n2", sendgate.Delivered)
	reports("unchanged", "2 2", "n2", sendgate.Failed)
	b.goes(ask("u", "n3", "push", home)) // under the household's cap alone
	reports("given_back", "2 2", "n3", sendgate.Dropped)
}

// TestManyGatesShareAHousehold has two gates ask for many people of one household
// at once. What one holds for a moment may deny the other; nobody is over.
func TestManyGatesShareAHousehold(t *testing.T) {
	t.Parallel()
	server, space := redistest.StartCluster(t), newSpace(t)
	gates := []*freqcap.Limiter{freqcap.New(server.Client(), space, newGuard()), freqcap.New(server.Client(), space, newGuard())}
	b := &rig{t, server.Client(), space, gates[0]}
	own, home := capOf(time.Hour, 1), ofHousehold("h", time.Hour, 5)
	var admitted atomic.Int64
	var all sync.WaitGroup
	for i := range 60 {
		all.Go(func() {
			a := gates[i%2].Judge(context.Background(), []sendgate.CapAsk{ask(sendgate.UserID(fmt.Sprint("u", i)), "n", "push", own, home)}, 0)[0]
			if a.Err != nil {
				t.Error(a.Err)
			}
			if a.Admitted {
				admitted.Add(1)
			}
		})
	}
	all.Wait()
	used := b.judge("x", "x", false, home).Caps[0].Used
	if n := admitted.Load(); n > 5 || n < 1 || int(n) != used {
		t.Errorf("%d admitted of 5, %d slots taken", n, used)
	}
}

const childEnv = "SENDGATE_FREQCAP_CHILD"

// dying is a connection of a process that is killed just before it sends the
// end of a check: before it confirms what it holds.
type dying struct{ net.Conn }

func (c dying) Write(p []byte) (int, error) {
	if strings.Contains(string(p), "\r\nconfirm\r\n") {
		self, err := os.FindProcess(os.Getpid())
		if err == nil {
			err = self.Kill()
		}
		panic(fmt.Sprint("still alive: ", err))
	}
	return c.Conn.Write(p)
}

// TestChild is the process that is killed.
func TestChild(t *testing.T) {
	addr := os.Getenv(childEnv)
	if addr == "" {
		return
	}
	client := redis.NewClient(&redis.Options{Addr: addr, Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		return dying{conn}, err
	}})
	space, err := keyspace.New("killed", 8)
	if err != nil {
		t.Fatal(err)
	}
	l := freqcap.New(client, space, newGuard())
	l.Judge(context.Background(), []sendgate.CapAsk{ask("u", "n", "push", capOf(time.Hour, 1), ofHousehold("h", time.Hour, 1))}, 0)
	t.Fatal("it was not killed")
}

// TestAKillBetweenSubjects kills a gate that holds slots of two subjects and has
// confirmed neither: after the hold nothing is charged.
func TestAKillBetweenSubjects(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	child := exec.Command(os.Args[0], "-test.run", "^TestChild$")
	child.Env = append(os.Environ(), childEnv+"="+server.Addr())
	out, err := child.CombinedOutput()
	if err == nil || !strings.Contains(err.Error(), "killed") {
		t.Fatalf("%v\n%s", err, out)
	}
	space, err := keyspace.New("killed", 8)
	if err != nil {
		t.Fatal(err)
	}
	b := &rig{t, server.Client(), space, freqcap.New(server.Client(), space, newGuard())}
	if b.client.Exists(t.Context(), space.Caps("", "u"), space.Caps("household_id", "h")).Val() != 2 {
		t.Fatal("nothing was held")
	}
	used := func() (n int) {
		for _, s := range b.judge("u", "x", false, capOf(time.Hour, 1), ofHousehold("h", time.Hour, 1)).Caps {
			n += s.Used
		}
		return n
	}
	redistest.Until(t, "nothing is charged", func() bool { return used() == 0 })
	if !b.goes(ask("u", "n", "push", capOf(time.Hour, 1), ofHousehold("h", time.Hour, 1))) || used() != 2 {
		t.Error("the id is not decided afresh")
	}
}
