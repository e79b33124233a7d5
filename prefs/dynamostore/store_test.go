package dynamostore

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"go.uber.org/goleak"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/internal/dynamotest"
	"github.com/sendgate/sendgate/limits"
	"github.com/sendgate/sendgate/prefs"
	"github.com/sendgate/sendgate/prefs/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	server := dynamotest.Start(t)
	var stores atomic.Int64
	storetest.Run(t, func(t *testing.T) prefs.Store {
		return openAt(t, Options{Config: server.Config(), TablePrefix: fmt.Sprint("conformance.", stores.Add(1)), Create: true})
	})
}

func openAt(t testing.TB, o Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

// fresh is a store in tables of its own.
func fresh(t *testing.T, server *dynamotest.Server) *Store {
	t.Helper()
	return openAt(t, Options{Config: server.Config(), TablePrefix: "t", Create: true})
}

func record(user sendgate.UserID, revision int64) *prefs.Record {
	at := time.UnixMilli(1_700_000_000_000 + revision).UTC()
	return &prefs.Record{
		User: user,
		Preferences: sendgate.Preferences{
			Revision: revision, UpdatedAt: at,
			Settings: sendgate.Settings{{Topic: "promotions", Channel: "email"}: false},
		},
		Pending: []prefs.Change{{ID: fmt.Sprint("id-", revision), Revision: revision, At: at}},
	}
}

func TestMissingTables(t *testing.T) {
	server := dynamotest.Start(t)
	_, err := Open(t.Context(), Options{Config: server.Config(), TablePrefix: "none"})
	for _, want := range []string{`"none-records"`, `"none-changes"`, `"none-meta"`, server.Endpoint(), "create"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("opening without tables: %v; want it to say %s", err, want)
		}
	}
	openAt(t, Options{Config: server.Config(), TablePrefix: "some", Create: true})
	openAt(t, Options{Config: server.Config(), TablePrefix: "some"})

	s := fresh(t, server)
	for _, table := range []table{s.tables.changes, s.tables.records} {
		if _, err := s.client.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: &table.name}); err != nil {
			t.Fatal(err)
		}
		_, err = Open(t.Context(), Options{Config: server.Config(), TablePrefix: "t"})
		if err == nil || !strings.Contains(err.Error(), table.name) || strings.Contains(err.Error(), "t-meta") {
			t.Errorf("opening without the table %q: %v", table.name, err)
		}
	}
	if _, err = s.Get(t.Context(), "u"); err == nil || !strings.Contains(err.Error(), "t-records") {
		t.Errorf("reading a table that is gone: %v", err)
	}
}

// Gates that start at the same time all make the tables, and use the same ones.
func TestCreatedTogether(t *testing.T) {
	server := dynamotest.Start(t)
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			s, err := Open(t.Context(), Options{Config: server.Config(), TablePrefix: "together", Create: true})
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			user := sendgate.UserID(fmt.Sprint("user-", i))
			if err := s.Put(t.Context(), record(user, 1), 0); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	s := openAt(t, Options{Config: server.Config(), TablePrefix: "together", Create: true})
	n := 0
	if err := s.Scan(t.Context(), 0, 1, func(*prefs.Record) error { n++; return nil }); err != nil || n != 4 {
		t.Errorf("%d of 4 records, %v", n, err)
	}
	others := openAt(t, Options{Config: server.Config(), TablePrefix: "apart", Create: true})
	if r, err := others.Get(t.Context(), "user-1"); err != nil || r.Revision != 0 {
		t.Errorf("behind another prefix: %v, %v", r, err)
	}
}

// Tables of another form are another program's, or were made by hand wrongly.
func TestOtherTables(t *testing.T) {
	server := dynamotest.Start(t)
	right := tablesOf("t")
	client := openAt(t, Options{Config: server.Config(), TablePrefix: "t", Create: true})
	number, text := types.ScalarAttributeTypeN, types.ScalarAttributeTypeS
	for name, wrong := range map[string]tables{
		"another key":         {records: table{keys: []key{{"id", text}}}, changes: right.changes, meta: right.meta},
		"a key too many":      {records: table{keys: []key{{attrUser, text}, {attrRevision, number}}}, changes: right.changes, meta: right.meta},
		"no index":            {records: table{keys: right.records.keys}, changes: right.changes, meta: right.meta},
		"shards as text":      {records: table{keys: right.records.keys, index: []key{{attrShard, text}, {attrSince, number}}}, changes: right.changes, meta: right.meta},
		"revisions as text":   {records: right.records, changes: table{keys: []key{{attrUser, text}, {attrRevision, text}}}, meta: right.meta},
		"an index by user":    {records: table{keys: right.records.keys, index: []key{{attrShard, number}, {attrUser, text}}}, changes: right.changes, meta: right.meta},
		"meta without a name": {records: right.records, changes: right.changes, meta: table{keys: []key{{attrUser, text}}}},
	} {
		t.Run(name, func(t *testing.T) {
			prefix := strings.ReplaceAll(name, " ", "_")
			own := tablesOf(prefix)
			wrong.records.name, wrong.changes.name, wrong.meta.name = own.records.name, own.changes.name, own.meta.name
			for _, table := range []table{wrong.records, wrong.changes, wrong.meta} {
				if err := client.create(t.Context(), table); err != nil {
					t.Fatal(err)
				}
			}
			for _, create := range []bool{false, true} {
				s, err := Open(t.Context(), Options{Config: server.Config(), TablePrefix: prefix, Create: create})
				if err == nil {
					_ = s.Close()
				}
				if err == nil || !strings.Contains(err.Error(), prefix+"-") {
					t.Errorf("opened: %v", err)
				}
			}
		})
	}
}

func TestIllegalOptions(t *testing.T) {
	here := dynamotest.Config("http://127.0.0.1:1")
	nowhere := here
	nowhere.Region = ""
	for name, o := range map[string]Options{
		"no prefix":         {Config: here},
		"a prefix too long": {Config: here, TablePrefix: strings.Repeat("x", 241)},
		"a prefix of words": {Config: here, TablePrefix: "two words"},
		"no region":         {Config: nowhere, TablePrefix: "t"},
		"a negative rate":   {Config: here, TablePrefix: "t", ScanUnitsPerSecond: -1},
	} {
		if _, err := Open(t.Context(), o); err == nil || strings.Contains(err.Error(), "refused") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The SDK's own chain decides what is not given.
func TestLoadConfig(t *testing.T) {
	for _, name := range []string{"AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"} {
		t.Setenv(name, filepath.Join(t.TempDir(), "none"))
	}
	for _, name := range []string{"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_ENDPOINT_URL"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	if _, err := LoadConfig(t.Context(), "", ""); err == nil || !strings.Contains(err.Error(), "no region") {
		t.Errorf("without a region: %v", err)
	}
	w := on(t, dynamotest.Start(t))
	t.Setenv("AWS_REGION", "eu-central-1")
	t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", "http://127.0.0.1:1")
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	t.Setenv("AWS_MAX_ATTEMPTS", "5")
	c, err := LoadConfig(t.Context(), "", "")
	if err != nil || c.Region != "eu-central-1" {
		t.Fatalf("region %q, %v", c.Region, err)
	}
	if _, err := Open(t.Context(), Options{Config: c, TablePrefix: "t"}); err == nil || !strings.Contains(err.Error(), "at http://127.0.0.1:1:") {
		t.Errorf("at the environment's endpoint: %v", err)
	}
	if c, err = LoadConfig(t.Context(), "eu-north-1", w.server.URL); err != nil || c.Region != "eu-north-1" || c.BaseEndpoint != nil {
		t.Fatalf("region %q, the endpoint of all services %v, %v", c.Region, c.BaseEndpoint, err)
	}
	s := openAt(t, Options{Config: c, TablePrefix: "t", Create: true})
	w.set(func(e *exchange) { e.refuse("ThrottlingException", "slow down") })
	if _, err := s.Get(t.Context(), "u"); err == nil || w.count("GetItem") != 1 {
		t.Errorf("asked %d times though the environment's five attempts are not used: %v", w.count("GetItem"), err)
	}
}

func TestClosed(t *testing.T) {
	ctx, s := t.Context(), fresh(t, dynamotest.Start(t))
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatalf("Close: %v", err)
		}
	}
	for call, do := range everyCall(s, "u") {
		if err := do(ctx); !errors.Is(err, ErrClosed) {
			t.Errorf("%s after Close: %v, want ErrClosed", call, err)
		}
	}
}

func TestIllegalArguments(t *testing.T) {
	w := on(t, dynamotest.Start(t))
	ctx, s := t.Context(), w.open(t)
	w.set(nil)
	for _, user := range []sendgate.UserID{"", "a\x00b", "\xff", sendgate.UserID(strings.Repeat("x", 257))} {
		_, getErr := s.Get(ctx, user)
		_, changesErr := s.Changes(ctx, user, 0, 1)
		for call, err := range map[string]error{
			"Get": getErr, "Changes": changesErr, "GetMany": s.GetMany(ctx, []sendgate.UserID{user})[0].Err,
			"Put": s.Put(ctx, record(user, 1), 0), "AppendChange": s.AppendChange(ctx, user, prefs.Change{Revision: 1}),
		} {
			if sendgate.CodeOf(err) != sendgate.CodeInvalidUserID {
				t.Errorf("%s of an illegal id: %v", call, err)
			}
		}
	}
	tooLarge := record("u", 1)
	tooLarge.Pending[0].Reason = strings.Repeat("x", prefs.MaxRecordBytes)
	for call, err := range map[string]error{"Put": s.Put(ctx, tooLarge, 0), "AppendChange": s.AppendChange(ctx, "u", tooLarge.Pending[0])} {
		if sendgate.CodeOf(err) != sendgate.CodeRecordTooLarge {
			t.Errorf("%s of what is too large: %v", call, err)
		}
	}
	for _, n := range []int{-1, prefs.PendingShards} {
		if s.Pending(ctx, n, nil) == nil || s.Scan(ctx, n, prefs.PendingShards, nil) == nil {
			t.Errorf("shard or segment %d of %d was read", n, prefs.PendingShards)
		}
	}
	for name, bytes := range map[string]int{"": 1, "d": limits.MaxDocumentBytes + 1} {
		if s.WriteDocument(ctx, name, make([]byte, bytes), 0) == nil {
			t.Errorf("a document %q of %d bytes was stored", name, bytes)
		}
	}
	if s.Scan(ctx, 0, maxSegments+1, nil) == nil {
		t.Error("a scan of more segments than there can be")
	}
	if changes, err := s.Changes(ctx, "u", 0, -1); err != nil || len(changes) != 0 {
		t.Errorf("at most -1 changes: %v, %v", changes, err)
	}
	if calls := w.sent(); len(calls) != 0 {
		t.Errorf("these calls were sent: %v", calls)
	}
	if _, err := s.Layout(ctx, prefs.Layout{}); err == nil {
		t.Error("a layout without partitions was stored")
	}
}
