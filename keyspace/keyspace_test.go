package keyspace_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/internal/redistest"
	"github.com/sendgate/sendgate/keyspace"
)

func space(t testing.TB, partitions int) *keyspace.Space {
	t.Helper()
	s, err := keyspace.New("sendgate", partitions)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// odd are ids that are legal and that a careless key would confuse.
var odd = []string{
	"a:b", "a", "b", "{a}", "}{", "{}", "{0}", "{", "}", "a{b}c", "a+b@x.io", "a b@x.io", "a%2Bb@x.io", "a/b", "a%2Fb", "ÜSER", "üser",
	"rec:a", "cap:a", "a:cap:b", "changes", ":", "::", "rolling1000", "category", "\u2028", "🙂", strings.Repeat("x", 256), " ", "-", "a=b", "a,b",
}

// The partition of a user is part of what is stored: it may never change.
func TestPartitionsAreStable(t *testing.T) {
	for user, want := range map[sendgate.UserID][2]int{
		"u_42": {236, 2028}, "{a}": {227, 483}, "ÜSER": {151, 1943}, "üser": {165, 421}, "a+b@x.io": {248, 1784},
		"a": {0x5b, 0xe5b}, // XXH64 of it is d24ec4f1a98c6e5b
	} {
		if got := [2]int{space(t, 256).Partition(user), space(t, 4096).Partition(user)}; got != want {
			t.Errorf("%q is in %v, want %v", user, got, want)
		}
	}
	if p := space(t, 1).Partition("anybody"); p != 0 {
		t.Errorf("of one partition: %d", p)
	}
}

func TestKeysAreAsDocumented(t *testing.T) {
	s := space(t, 256)
	tag := fmt.Sprintf("sendgate:{%d}:", s.Partition("u_42"))
	for got, want := range map[string]string{
		s.Record("u_42"):   tag + "rec:u_42",
		s.Stream(17):       "sendgate:{17}:changes",
		s.Channel():        "sendgate:changes",
		s.Caps("", "u_42"): tag + "cap:u_42",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := s.Caps("household_id", "h"); !strings.HasPrefix(got, "sendgate:{") || !strings.HasSuffix(got, "}:cap\x1fhousehold_id\x1fh") {
		t.Errorf("%q", got)
	}
}

func anID() *rapid.Generator[string] {
	return rapid.OneOf(rapid.SampledFrom(odd), rapid.StringMatching(`[ab:{}0-9 ]{1,6}`), rapid.StringN(1, 40, 256)).
		Filter(func(id string) bool { return sendgate.UserID(id).Validate("id") == nil })
}

func TestNoTwoSubjectsShareAKey(t *testing.T) {
	s := space(t, 4)
	keys := map[string]string{}
	rapid.Check(t, func(t *rapid.T) {
		field := rapid.SampledFrom([]sendgate.Field{"", "household_id", "device_id", "attributes.a"}).Draw(t, "subject")
		id := anID().Draw(t, "id")
		key, what := s.Caps(field, id), fmt.Sprintf("%q %q", field, id)
		if before, there := keys[key]; there && before != what {
			t.Fatalf("%s and %s share %q", before, what, key)
		}
		keys[key] = what
		user := sendgate.UserID(id)
		if key == s.Record(user) || key == s.Stream(s.Partition(user)) {
			t.Fatalf("%s has a key of another kind", what)
		}
	})
}

func TestNoTwoUsersShareARecord(t *testing.T) {
	s, keys := space(t, 1), map[string]string{}
	for _, id := range odd {
		key := s.Record(sendgate.UserID(id))
		if before, there := keys[key]; there || key == s.Stream(0) {
			t.Errorf("%q and %q share %q", before, id, key)
		}
		keys[key] = id
	}
}

// All keys of a user are in one slot of a cluster with the partition's stream,
// whatever braces the id holds. Redis itself says which slot that is.
func TestAUsersKeysAreInOneSlot(t *testing.T) {
	client := redistest.StartCluster(t).Masters()[0].Client()
	s := space(t, 256)
	slot := func(key string) int64 {
		n, err := client.ClusterKeySlot(t.Context(), key).Result()
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, id := range odd {
		user := sendgate.UserID(id)
		want := slot(s.Stream(s.Partition(user)))
		for _, key := range []string{s.Record(user), s.Caps("", id)} {
			if got := slot(key); got != want {
				t.Errorf("%q is in slot %d, and its stream in %d", key, got, want)
			}
		}
	}
}

func TestSpacesAreValidated(t *testing.T) {
	for _, name := range []string{"", "A", "a{b}", "a:b", "a b", "-a", "_a", strings.Repeat("a", 33), "ä", "a\n"} {
		if _, err := keyspace.New(name, 1); err == nil {
			t.Errorf("namespace %q is taken", name)
		}
	}
	for _, n := range []int{-1, 0, keyspace.MaxPartitions + 1, math.MaxInt} {
		if _, err := keyspace.New("a", n); err == nil {
			t.Errorf("%d partitions are taken", n)
		}
	}
	for _, name := range []string{"a", "0", "send_gate-2", strings.Repeat("a", 32)} {
		if s, err := keyspace.New(name, keyspace.MaxPartitions); err != nil || s.Partitions() != keyspace.MaxPartitions {
			t.Errorf("namespace %q: %v", name, err)
		}
	}
}

func TestRecordTTLIsWithinItsBounds(t *testing.T) {
	low, high := time.Duration(math.MaxInt64), time.Duration(0)
	for range 100_000 {
		ttl := keyspace.RecordTTL()
		low, high = min(low, ttl), max(high, ttl)
	}
	if low < keyspace.MaxRecordTTL*3/4 || high > keyspace.MaxRecordTTL || high-low < keyspace.MaxRecordTTL/5 {
		t.Errorf("from %v to %v", low, high)
	}
}

func TestParseRecordValue(t *testing.T) {
	for value, want := range map[string]string{
		"R0 ": "0 ", "R1 {}": "1 {}", "R12 a b": "12 a b", "R9223372036854775807 x": "9223372036854775807 x",
		"": "no", "R": "no", "R1": "no", "R 1 x": "no", "L1 x": "no", "r1 x": "no", "R-1 x": "no", "R+1 x": "no", "R-0 x": "no",
		"R1_0 x": "no", "R0x1 x": "no", "R9223372036854775808 x": "no", "R x": "no", "R1.5 x": "no",
	} {
		got := "no"
		if revision, body, ok := keyspace.ParseRecordValue(value); ok {
			got = fmt.Sprint(revision) + " " + body
		}
		if got != want {
			t.Errorf("%q: %q, want %q", value, got, want)
		}
	}
	if _, _, ok := keyspace.ParseRecordValue(keyspace.LeaseValue("R1 x")); ok {
		t.Error("a lease is a record")
	}
}

func FuzzParseRecordValue(f *testing.F) {
	for _, seed := range []string{"R1 x", "L1", "R", "R-1 x", "R99999999999999999999 x", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		revision, body, ok := keyspace.ParseRecordValue(value)
		if !ok {
			return
		}
		if revision < 0 {
			t.Fatalf("revision %d", revision)
		}
		again, sameBody, ok := keyspace.ParseRecordValue(keyspace.RecordValue(revision, []byte(body)))
		if !ok || again != revision || sameBody != body {
			t.Fatalf("%q: %d %q, and then %d %q", value, revision, body, again, sameBody)
		}
	})
}
