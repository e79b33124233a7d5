package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/catalogfile"
	"github.com/sendgate/sendgate/internal/redistest"
	"github.com/sendgate/sendgate/prefs"
	"github.com/sendgate/sendgate/rebuild"
)

func promotions(on bool) sendgate.Settings {
	return sendgate.Settings{{Topic: "promotions", Channel: "push"}: on}
}

func TestOnceAndInspect(t *testing.T) {
	i := install(t)
	held := record("held", nil, sendgate.Hold{Source: sendgate.SourceUser, Reason: prefs.ReasonUserRequested, RetainEssential: true})
	gone := record("gone", nil, sendgate.Hold{Source: sendgate.SourceUser, Reason: prefs.ReasonAccountDeletion})
	optedIn := record("in", sendgate.Settings{{Topic: "newsletter", Channel: "sms"}: true})
	records := []*prefs.Record{record("out", promotions(false)), held, gone, optedIn, record("on", promotions(true))}
	i.store(records...)
	_, log, err := runs(t.Context(), "--once", "--config", i.conf)
	if err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	lines := strings.Split(strings.TrimSpace(log), "\n")
	for n, want := range []string{`"stage":"mark"`, `"stage":"read and build"`, `"stage":"publish"`, `"msg":"a filter was built"`} {
		if len(lines) != 4 || !strings.Contains(lines[n], want) {
			t.Fatalf("no line %d with %s in\n%s", n, want, log)
		}
	}
	if !strings.Contains(lines[1], `"records":5`) {
		t.Errorf("not 5 records: %s", lines[1])
	}
	h := hasAll(t, i.only(), records...)
	out, log, err := runs(t.Context(), "inspect", i.only(), "--probes", "20000")
	if err != nil || log != "" {
		t.Errorf("%v, %s", err, log)
	}
	for _, want := range []string{
		"namespace sendgate", fmt.Sprint("generation ", h.Generation), "built 20", "position 256 partitions, token " + h.Position.Token,
		"keys 2 holds, 1 hard holds, 1 opt-outs, 1 opt-ins", "{newsletter sms}", "checksums right, and all 64 canaries found",
		" of checks by the bits that are set, ", " of 20,000 probes",
	} {
		if !strings.Contains(strings.Join(strings.Fields(out), " "), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	// One more, by its other name.
	if _, log, err := runs(t.Context(), "build", "--once", "--config", i.conf); err != nil || len(i.published()) != 2 {
		t.Errorf("%v, %q are published\n%s", err, i.published(), log)
	}
}

// TestPages builds from a table of several pages that has fewer records than
// segments, and again in so few that each has several pages.
func TestPages(t *testing.T) {
	const many, settings = 12, 80 // a third of a page each
	i := install(t)
	var records []*prefs.Record
	for r := range many {
		all := sendgate.Settings{}
		for s := range settings {
			all[sendgate.Setting{Topic: fmt.Sprint(strings.Repeat("long", 1000), s), Channel: "push"}] = false
		}
		records = append(records, record(fmt.Sprint("u", r), all))
	}
	i.store(records...)
	if _, log, err := runs(t.Context(), "--once", "--config", i.conf); err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	if h := hasAll(t, i.only(), records...); many >= segments || h.Keys.OptOuts != many*settings {
		t.Errorf("%d opt-outs of %d records in %d segments", h.Keys.OptOuts, many, segments)
	}
	conf, b := i.open()
	o, err := options(t.Context(), conf, b, newBar(io.Discard), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	o.Segments = 2
	if _, err := rebuild.New(o).Once(t.Context()); err != nil {
		t.Fatal(err)
	}
	if h := hasAll(t, i.published()[1], records...); h.Keys.OptOuts != many*settings {
		t.Errorf("%d opt-outs of %d records in 2 segments", h.Keys.OptOuts, many)
	}
}

func TestSchedule(t *testing.T) {
	i := install(t)
	r := record("out", promotions(false))
	i.store(r)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var log string
	ended := make(chan error, 1)
	go func() {
		var err error
		_, log, err = runs(ctx, "--config", i.conf)
		ended <- err
	}()
	redistest.Until(t, "a filter is published at once", func() bool { return len(i.published()) > 0 })
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("%v\n%s", err, log)
	}
	hasAll(t, i.published()[0], r)
}

// TestACatalogWithAFault has the catalog be edited between rebuilds.
func TestACatalogWithAFault(t *testing.T) {
	path := filepath.Join(t.TempDir(), "catalog.yaml")
	var log bytes.Buffer
	read := catalogOf(path, slog.New(slog.NewTextHandler(&log, nil)))
	if c, err := read(); c != nil || err == nil {
		t.Errorf("no catalog at first: %v, %v", c, err)
	}
	writeFile(t, path, string(catalogfile.SampleYAML()))
	good, err := read()
	if err != nil || log.Len() > 0 {
		t.Fatalf("%v\n%s", err, log.String())
	}
	writeFile(t, path, "categories: 7\n")
	if c, err := read(); c != good || err != nil || !strings.Contains(log.String(), "catalog.yaml:1: ") {
		t.Errorf("a fault: %v, %v\n%s", c, err, log.String())
	}
	writeFile(t, path, string(catalogfile.SampleYAML()))
	if c, err := read(); c == good || err != nil {
		t.Errorf("mended: %v, %v", c, err)
	}
}

func TestBadConfiguration(t *testing.T) {
	i := install(t)
	for args, wants := range map[string][]string{
		"--once": {"missing flags: --config"},
		"--once --config " + i.dir + "/none.yaml":                                                                 {"none.yaml"},
		"--config " + i.configure("nowhere.yaml", "127.0.0.1:1", "http://127.0.0.1:1", ""):                        {"filter.url: "},
		"--once --config " + i.configure("foreign.yaml", "127.0.0.1:1", "http://127.0.0.1:1", "gs://b"):           {"foreign.yaml:5: filter.url: "},
		"--once --config " + i.configure("lost.yaml", "127.0.0.1:1", "http://127.0.0.1:1", "file:///"+i.dir+"/f"): {"store.dynamodb: ", "http://127.0.0.1:1"},
		"--once --config " + i.configure("below.yaml", "127.0.0.1:1", i.endpoint, "file://"+i.conf+"/f"):          {"filter.url: ", "not a directory"},
		"--once --config " + i.configure("dead.yaml", "127.0.0.1:1", i.endpoint, "file://"+i.filters()+"-dead"):   {"mark a position in the change streams", "refused"},
	} {
		_, _, err := runs(t.Context(), strings.Fields(args)...)
		for _, want := range wants {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: no %q in %v", args, want, err)
			}
		}
	}
	if got := i.published(); len(got) != 0 {
		t.Errorf("%q are published", got)
	}
}
