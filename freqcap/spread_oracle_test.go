package freqcap_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/freqcap"
)

// shortHold is for how long something is held for a check of several subjects.
const shortHold = int64(2000)

// spread is the slow and obvious form of the caps of two users and two
// households: a ledger for each counter of each subject.
type spread struct {
	r       *rapid.T
	b       *rig
	dying   *freqcap.Limiter // of a gate that is killed before it confirms or drops what it holds
	now     int64
	limits  map[string]int // by what a cap counts
	ledgers map[string]*ledger
	told    []string
}

const spreadWindow = int64(100_000)

func newSpread(t *testing.T, r *rapid.T, client redis.UniversalClient) *spread {
	b := onTestClock(t, client)
	m := &spread{r: r, b: b, dying: freqcap.NewOnTestClock(client, b.space, newGuard()), now: 1_700_000_000_000, ledgers: map[string]*ledger{}}
	m.dying.DieBeforeTheEnd()
	m.limits = map[string]int{}
	for _, what := range []string{"own", "home", "channel"} {
		m.limits[what] = rapid.IntRange(0, 4).Draw(r, what)
	}
	return m
}

// pass lets time pass.
func (m *spread) pass(millis int64) {
	m.now += millis
	for _, user := range []sendgate.UserID{"u", "v"} {
		m.b.at(user, m.now)
	}
	for _, home := range []string{"h", "u"} {
		m.b.atHome(home, m.now)
	}
	for _, l := range m.ledgers {
		l.pass(m.now)
	}
}

func (m *spread) ledger(name string) *ledger {
	if m.ledgers[name] == nil {
		m.ledgers[name] = newLedger(func(at, now int64) bool { return at > now-spreadWindow }, spreadWindow, false)
	}
	return m.ledgers[name]
}

// spreadAsk is an ask, and the ledger of each of its caps.
type spreadAsk struct {
	sendgate.CapAsk
	ledgers []string
	id      string // in the ledgers
}

func (m *spread) draw(user sendgate.UserID, window time.Duration) (a spreadAsk) {
	a.User, a.NotificationID = user, fmt.Sprint("n", rapid.IntRange(0, 3).Draw(m.r, "id"))
	a.Channel = rapid.SampledFrom([]string{"push", "email"}).Draw(m.r, "channel")
	if rapid.Bool().Draw(m.r, "hold") {
		a.Hold = time.Minute
	}
	a.id = string(user) + a.NotificationID
	which := rapid.IntRange(0, 7).Draw(m.r, "caps")
	if which&1 > 0 {
		a.Caps, a.ledgers = append(a.Caps, capOf(window, m.limits["own"])), append(a.ledgers, "own "+string(user))
	}
	if which&2 > 0 {
		home := rapid.SampledFrom([]string{"h", "u"}).Draw(m.r, "home") // one is called as a user is
		a.Caps, a.ledgers = append(a.Caps, ofHousehold(home, window, m.limits["home"])), append(a.ledgers, "home "+home)
	}
	if which&4 > 0 {
		a.Caps, a.ledgers = append(a.Caps, capOf(window, m.limits["channel"], "channel", a.Channel)), append(a.ledgers, "channel "+string(user)+a.Channel)
	}
	return a
}

// open tells whether there is room under each cap of a subject: of the household,
// or of the user.
func (m *spread) open(a *spreadAsk, home bool) bool {
	for i, name := range a.ledgers {
		if (a.Caps[i].Subject != "") == home && !m.ledger(name).open(m.now, a.id, a.Caps[i].Limit) {
			return false
		}
	}
	return true
}

// judge judges an ask that reserves. Killed is what a gate leaves that is killed
// before the end: what it holds for a moment, wherever there is room.
func (m *spread) judge(a *spreadAsk, killed bool) (admitted bool) {
	several := strings.Contains(strings.Join(a.ledgers, " "), "home")
	admitted = m.open(a, true) && m.open(a, false)
	if !several && !admitted {
		return false
	}
	var open []*ledger // where there is room
	for _, home := range []bool{false, true} {
		if m.open(a, home) {
			open = append(open, m.ofSubject(a, home)...)
		}
	}
	for _, l := range open {
		switch {
		case several && killed:
			l.take(m.now, a.id, a.Channel, shortHold, true)
		case admitted:
			l.take(m.now, a.id, a.Channel, a.Hold.Milliseconds(), false)
		default:
			l.take(m.now, a.id, a.Channel, shortHold, true)
			l.drop(a.id, a.Channel)
		}
	}
	return admitted
}

// ofSubject are an ask's ledgers of one subject: of the household, or of the user,
// who has one more, which links to the household.
func (m *spread) ofSubject(a *spreadAsk, home bool) (ledgers []*ledger) {
	for i, name := range a.ledgers {
		if ofHome := a.Caps[i].Subject != ""; ofHome == home {
			ledgers = append(ledgers, m.ledger(name))
		} else if ofHome {
			ledgers = append(ledgers, m.link(a.User, a.Caps[i].SubjectID))
		}
	}
	return ledgers
}

// link is the ledger of what tells a report of a user that a household knows the
// id, too.
func (m *spread) link(user sendgate.UserID, home string) *ledger {
	return m.ledger(fmt.Sprintf("link of %s to %s", user, home))
}

// reaches tells whether a report reaches a ledger.
func (m *spread) reaches(r *sendgate.CapReport, name string) bool {
	home, found := strings.CutPrefix(name, "home ")
	if !found {
		return true
	}
	s := m.link(r.User, home).slots[string(r.User)+r.NotificationID]
	if s == nil {
		return false
	}
	_, gone := s.gone[r.Channel]
	return len(s.uses) > 0 || gone || r.Channel == "" && len(s.gone) > 0
}

// report reports something, and says so to every ledger.
func (m *spread) report() {
	r := sendgate.CapReport{
		User:           rapid.SampledFrom([]sendgate.UserID{"u", "v"}).Draw(m.r, "user"),
		NotificationID: fmt.Sprint("n", rapid.IntRange(0, 3).Draw(m.r, "id")),
		Channel:        rapid.SampledFrom([]string{"push", "email", ""}).Draw(m.r, "channel"),
		Fate:           rapid.SampledFrom([]sendgate.Fate{sendgate.Failed, sendgate.Delivered}).Draw(m.r, "fate"),
	}
	channels := []string{r.Channel}
	if r.Channel == "" {
		r.Fate, channels = sendgate.Failed, []string{"push", "email"}
	}
	m.told = append(m.told, fmt.Sprintf("at %d %s: %s %s of %s on %q", m.now, m.b.report(r), r.NotificationID, r.Fate, r.User, r.Channel))
	var reached []*ledger
	for name, l := range m.ledgers {
		if m.reaches(&r, name) {
			reached = append(reached, l)
		}
	}
	for _, l := range reached {
		for _, channel := range channels {
			if id := string(r.User) + r.NotificationID; r.Fate == sendgate.Failed {
				l.failed(id, channel)
			} else {
				l.delivered(m.now, id, channel, m.now, 0)
			}
		}
	}
}

// check compares what is charged with the ledgers.
func (m *spread) check() {
	window := time.Duration(spreadWindow) * time.Millisecond
	caps := []sendgate.BoundCap{capOf(window, 9), capOf(window, 9, "channel", "push"), ofHousehold("h", window, 9), ofHousehold("u", window, 9)}
	for i, s := range m.b.judge("u", "nobody", false, caps...).Caps {
		name := []string{"own u", "channel upush", "home h", "home u"}[i]
		if want := m.ledger(name).used(m.now); s.Used != want {
			m.r.Fatalf("%v\n%s\n%s: %d used, want %d", m.limits, strings.Join(m.told, "\n"), name, s.Used, want)
		}
	}
}

// verdicts are, for each answer, one letter, and how many slots of each cap are
// taken.
func verdicts(r *rapid.T, answers []sendgate.CapAnswer) (text string) {
	for _, a := range answers {
		switch {
		case a.Err != nil:
			r.Fatal(a.Err)
		case a.Passed:
			text += "-"
		case a.Admitted:
			text += "y"
		default:
			text += "n"
		}
		for _, s := range a.Caps {
			text += fmt.Sprint(s.Used)
		}
	}
	return text
}

// used is how many slots of each of an ask's caps are taken.
func (m *spread) used(a *spreadAsk) (text string) {
	for _, name := range a.ledgers {
		text += fmt.Sprint(m.ledger(name).used(m.now))
	}
	return text
}

// testListsOfSeveralSubjects holds arbitrary lists of asks under caps of users and
// households, and reports of them, against the ledgers.
func testListsOfSeveralSubjects(t *testing.T, client redis.UniversalClient) {
	rapid.Check(t, func(r *rapid.T) {
		m := newSpread(t, r, client)
		for range rapid.IntRange(1, 12).Draw(r, "steps") {
			m.pass(rapid.SampledFrom([]int64{1, 1, 1, 5000, 50_000, spreadWindow}).Draw(r, "passes"))
			if rapid.Bool().Draw(r, "report") {
				m.report()
			} else {
				m.list()
			}
			m.check()
		}
	})
}

// list asks for a list of one user.
func (m *spread) list() {
	user := rapid.SampledFrom([]sendgate.UserID{"u", "v"}).Draw(m.r, "user")
	take := rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(m.r, "take")
	look := take == 0 && rapid.Bool().Draw(m.r, "look")
	left, want := take, ""
	var asks []sendgate.CapAsk
	for range rapid.IntRange(1, 5).Draw(m.r, "asks") {
		a := m.draw(user, time.Duration(spreadWindow)*time.Millisecond)
		a.Look = look
		asks = append(asks, a.CapAsk)
		m.told = append(m.told, fmt.Sprintf("at %d take %d, look %t: %s of %s on %s, held %s, by %v", m.now, take, look, a.NotificationID, user, a.Channel, a.Hold, a.ledgers))
		open := m.open(&a, true) && m.open(&a, false)
		switch {
		case open && look:
			want += "y"
		case open && take > 0 && left == 0:
			want += "-"
		case look || take > 0 && left == 0:
			want += "n"
		case m.judge(&a, false):
			want += "y"
			left--
		default:
			want += "n"
		}
		want += m.used(&a)
	}
	if got := verdicts(m.r, m.b.Judge(context.Background(), asks, take)); got != want {
		m.r.Fatalf("%v\n%s\n%s, want %s", m.limits, strings.Join(m.told, "\n"), got, want)
	}
}

// testGatesThatAreKilled has gates killed again and again between holding what a
// check takes and confirming it, among others that live. Once the short hold is
// over, what counts is what others have been allowed, and nothing besides.
func testGatesThatAreKilled(t *testing.T, client redis.UniversalClient) {
	rapid.Check(t, func(r *rapid.T) {
		m := newSpread(t, r, client)
		all := rapid.Bool().Draw(r, "all are killed")
		for range rapid.IntRange(1, 15).Draw(r, "steps") {
			m.pass(rapid.SampledFrom([]int64{0, 1, 500, shortHold - 1, shortHold, 30_000, 60_000}).Draw(r, "passes"))
			switch what := rapid.SampledFrom([]string{"killed", "killed", "lives", "report"}).Draw(r, "what"); {
			case what == "report" && !all:
				m.report()
			default:
				m.one(all || what == "killed")
			}
			m.check()
		}
		m.pass(shortHold)
		m.check()
		for name, l := range m.ledgers {
			if n := l.used(m.now); all && n > 0 {
				r.Fatalf("%s: %d are charged, and all were killed", name, n)
			}
		}
	})
}

// one asks for one notification of a user and the household.
func (m *spread) one(killed bool) {
	a := m.draw(rapid.SampledFrom([]sendgate.UserID{"u", "v"}).Draw(m.r, "user"), time.Duration(spreadWindow)*time.Millisecond)
	if !strings.Contains(strings.Join(a.ledgers, " "), "home") {
		return
	}
	m.told = append(m.told, fmt.Sprintf("at %d killed %t: %s of %s on %s, held %s, by %v", m.now, killed, a.NotificationID, a.User, a.Channel, a.Hold, a.ledgers))
	l := m.b.Limiter
	if killed {
		l = m.dying
	}
	answer, want := l.Judge(context.Background(), []sendgate.CapAsk{a.CapAsk}, 0)[0], m.judge(&a, killed)
	if answer.Err != nil && (!killed || !want) || answer.Err == nil && answer.Admitted != want {
		m.r.Fatalf("%v\n%s\n%+v, want %t", m.limits, strings.Join(m.told, "\n"), answer, want)
	}
	if killed {
		return
	}
	if got := verdicts(m.r, []sendgate.CapAnswer{answer})[1:]; got != m.used(&a) {
		m.r.Fatalf("%v\n%s\n%s used, want %s", m.limits, strings.Join(m.told, "\n"), got, m.used(&a))
	}
}
