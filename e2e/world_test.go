package e2e_test

import (
	"context"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/internal/oracle"
	"github.com/sendgate/sendgate/prefs"
)

// How many people there are in the store. The last of them change their minds
// in the course of the test, and are asked about nowhere else.
const (
	population = 100_000 / part
	changeable = 3_000
)

// zones are those of the product's own database, read by the standard library.
var zones = func() *oracle.Zones {
	archive, err := os.ReadFile("../quiet/zoneinfo.zip")
	if err != nil {
		panic(err)
	}
	z, err := oracle.NewZones(archive)
	if err != nil {
		panic(err)
	}
	return z
}()

// world is the population, and the oracle that knows it.
type world struct {
	rand    *rand.Rand
	people  []*person
	movable [2][]*person // who is in, and who is out of what optOut is about; not yet taken by take

	mu      sync.Mutex
	oracle  *oracle.Oracle
	slowest time.Duration // of all requests so far
}

func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	w := &world{rand: rand.New(rand.NewPCG(seed, 0)), oracle: oracle.New(catalog(), zones)}
	now := time.Now()
	for i := range population {
		p := anybody(w.rand, i, now)
		if i >= population-changeable {
			p = &person{id: p.id, revision: 1, settings: map[sendgate.Setting]bool{{Topic: optOut.check.Topic, Channel: optOut.check.Channel}: i%2 == in}}
			w.movable[i%2] = append(w.movable[i%2], p)
		} else {
			w.people = append(w.people, p)
		}
		if err := p.tell(w.oracle, now); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// in and out are the two kinds of people that take has.
const in, out = 0, 1

// take takes people of a kind who have not changed anything yet.
func (w *world) take(t *testing.T, kind, n int) (taken []*person) {
	t.Helper()
	if len(w.movable[kind]) < n {
		t.Fatalf("%d people of kind %d are left, and %d are wanted", len(w.movable[kind]), kind, n)
	}
	taken, w.movable[kind] = w.movable[kind][:n], w.movable[kind][n:]
	return taken
}

// batchSize is how many items DynamoDB takes at once.
const batchSize = 25

// load puts everybody into the table of records, as the store would have left
// them there: with nothing pending. In batches it is six times as fast as by
// the store itself. What the store makes of it, the builder's scan shows.
func (w *world) load(t *testing.T, client *dynamodb.Client, table string) {
	t.Helper()
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(4)
	now := time.Now()
	var requests []types.WriteRequest
	flush := func() {
		batch := requests
		requests = nil
		if len(batch) > 0 {
			group.Go(func() error { return write(ctx, client, table, batch) })
		}
	}
	for _, people := range [][]*person{w.people, w.movable[in], w.movable[out]} {
		for _, p := range people {
			record, err := p.record(now)
			if err != nil {
				t.Fatal(err)
			}
			body, err := prefs.EncodeRecord(record)
			if err != nil {
				t.Fatal(err)
			}
			requests = append(requests, types.WriteRequest{PutRequest: &types.PutRequest{Item: itemOf(record, body)}})
			if len(requests) == batchSize {
				flush()
			}
		}
	}
	flush()
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

func write(ctx context.Context, client *dynamodb.Client, table string, batch []types.WriteRequest) error {
	for left := batch; len(left) > 0; {
		out, err := client.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{table: left}})
		if err != nil {
			return err
		}
		left = out.UnprocessedItems[table]
	}
	return nil
}
