package freqcap_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sendgate/sendgate"
)

// goldenCase is a history of asks under one cap, keyed by campaign.
type goldenCase struct {
	Limit  int   `json:"limit"`
	Window int64 `json:"window_ms"`
	Steps  []struct {
		User  sendgate.UserID `json:"user"`
		Key   string          `json:"key"`
		At    int64           `json:"at_ms"`
		Allow bool            `json:"allow"`
	} `json:"steps"`
}

// testGolden holds the package to answers that were worked out beforehand. The
// environment variable SENDGATE_CASES names another folder with a
// rolling-cap.jsonl.
func testGolden(t *testing.T, client redis.UniversalClient) {
	folder := "../testdata"
	if other := os.Getenv("SENDGATE_CASES"); other != "" {
		folder = other
	}
	data, err := os.ReadFile(filepath.Join(folder, "rolling-cap.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	cases := 0
	for i, line := range bytes.Split(data, []byte("\n")) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var c goldenCase
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatalf("line %d: %v", i+1, err)
		}
		c.check(onTestClock(t, client), i+1)
		cases++
	}
	if cases == 0 {
		t.Fatal("no cases")
	}
	t.Logf("%d cases", cases)
}

func (c goldenCase) check(b *rig, number int) {
	b.t.Helper()
	for i, s := range c.Steps {
		b.at(s.User, s.At)
		limit := capOf(time.Duration(c.Window)*time.Millisecond, c.Limit, "campaign_id", s.Key)
		id := fmt.Sprintf("n%d", i)
		looked := b.judge(s.User, id, false, limit)
		got := b.charge(s.User, id, limit)
		if got.Admitted != s.Allow || looked.Admitted != s.Allow || got.Caps[0].Full == s.Allow {
			b.t.Errorf("case %d, step %d: got %+v after a look at %+v, want %t", number, i+1, got, looked, s.Allow)
		}
	}
}
