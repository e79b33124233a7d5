package decisionlog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/decisionlog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.UnixMilli(1_780_000_000_000).UTC()

func options(path string) decisionlog.Options {
	return decisionlog.Options{Path: path, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return noon }}
}

func open(t *testing.T, o decisionlog.Options) *decisionlog.Log {
	t.Helper()
	l, err := decisionlog.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func closeLog(t *testing.T, l *decisionlog.Log) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// decide tells a log of an allow that was charged.
func decide(l *decisionlog.Log, id string) {
	c := sendgate.Check{NotificationID: id, User: "u", Topic: "promotions", Channel: "push"}
	d := sendgate.Decision{
		NotificationID: id, User: "u", Category: "marketing", Reason: sendgate.ReasonDefaultOn, CapsAt: noon,
		Caps: []sendgate.CapState{{
			Cap:    sendgate.Cap{By: []sendgate.Field{"category"}, Window: 24 * time.Hour, Limit: 5},
			Values: []string{"marketing"}, Used: 1,
		}},
	}
	l.Decided(&c, &d, sendgate.Reserve)
}

// readAll reads logs.
func readAll(t *testing.T, o decisionlog.ReadOptions, paths ...string) (entries []*decisionlog.Entry, stats decisionlog.Stats, err error) {
	t.Helper()
	stats, err = decisionlog.Read(context.Background(), paths, o, func(e *decisionlog.Entry, _ int64) error {
		entries = append(entries, e)
		return nil
	})
	return entries, stats, err
}

func ids(entries []*decisionlog.Entry) string {
	var names []string
	for _, e := range entries {
		names = append(names, e.NotificationID)
	}
	return strings.Join(names, " ")
}

func write(t *testing.T, name string, text ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(strings.Join(text, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// line is an entry as a gate writes it.
func line(id string, at int64) string {
	return fmt.Sprintf(`{"v":1,"kind":"decision","at":%d,"user":"u","notification_id":%q,"channel":"push","verdict":"allow","caps":[{"kind":"rolling","window":"24h","limit":5,"used":1}]}`+"\n", at, id)
}

const opened = `{"v":1,"kind":"open","at":1}` + "\n"

var errFull = errors.New("no space is left")

// disk is a file in memory that can be slow, and full.
type disk struct {
	mu      sync.Mutex
	written bytes.Buffer
	writes  int
	room    int // bytes that are free; negative: without end
	synced  bool
	closed  bool
	gate    chan struct{} // what a write waits for; nil: nothing
	waiting chan struct{} // is told that one does
}

func (d *disk) Write(p []byte) (int, error) {
	if d.gate != nil {
		d.waiting <- struct{}{}
		<-d.gate
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.writes++
	if d.room >= 0 && len(p) > d.room {
		n, _ := d.written.Write(p[:d.room])
		d.room = 0
		return n, errFull
	}
	if d.room >= 0 {
		d.room -= len(p)
	}
	return d.written.Write(p)
}

func (d *disk) Sync() error  { d.synced = true; return nil }
func (d *disk) Close() error { d.closed = true; return nil }

func (d *disk) free(room int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.room = room
}

func (d *disk) text() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.written.String()
}
