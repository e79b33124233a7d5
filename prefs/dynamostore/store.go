package dynamostore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/logging"
	"golang.org/x/time/rate"

	"github.com/sendgate/sendgate/prefs"
)

// DefaultScanUnits is how many read units a second a scan takes if nothing else
// is said: half of what a new table that is paid by request has to give, so that
// the gates keep the other half.
const DefaultScanUnits = 6000

// ErrClosed is the error of every call after Close.
var ErrClosed = errors.New("dynamostore: the store is closed")

// Options say which tables a store has and how it gets at them.
type Options struct {
	// Config has the region, the credentials, and the endpoint if it is not
	// the region's own: see LoadConfig. What it says of retries is not used.
	Config aws.Config
	// TablePrefix begins the name of every table: 1 to 240 letters, digits and
	// `_`, `-`, `.`.
	TablePrefix string
	// Create has tables made that are missing.
	Create bool
	// ScanUnitsPerSecond bounds what all scans of this store together take, in
	// read units: one is 4 KB, read consistently. 0 is DefaultScanUnits. A scan
	// may be ahead of it by a second's worth and by one page, at most 1 MB, for
	// each segment.
	ScanUnitsPerSecond int
}

// Store is a prefs.Store in DynamoDB. It is safe for concurrent use.
type Store struct {
	client *dynamodb.Client
	where  string // for errors: the endpoint, or the region if it has none
	tables tables
	scans  pacer
	idle   func() // closes connections that are not in use
	closed atomic.Bool
}

var _ prefs.Store = (*Store)(nil)

// LoadConfig finds credentials, and the region and the endpoint where they are
// empty here, as every program on the SDK does: in the environment, the shared
// files, the role of the machine. It is an error if no region is found.
func LoadConfig(ctx context.Context, region, endpoint string) (aws.Config, error) {
	// What it would log is in the errors.
	options := []func(*config.LoadOptions) error{config.WithLogger(logging.Nop{})}
	if region != "" {
		options = append(options, config.WithRegion(region))
	}
	c, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return aws.Config{}, fmt.Errorf("dynamostore: the configuration of the SDK: %w", err)
	}
	if endpoint != "" {
		// Of all services of this one alone, as credentials may come from
		// another; and the environment's endpoint for it must not win.
		c.ServiceOptions = append(c.ServiceOptions, func(_ string, options any) {
			if o, ok := options.(*dynamodb.Options); ok {
				o.BaseEndpoint = &endpoint
			}
		})
	}
	return c, checkRegion(c)
}

func checkRegion(c aws.Config) error {
	if c.Region == "" {
		return errors.New("dynamostore: no region is given, nor found in the environment or the SDK's own files")
	}
	return nil
}

var legalPrefix = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,240}$`)

// Open makes sure that the tables are there and ready, and makes them if
// Options say so; any number of processes may do that at the same time. It
// waits for tables that are being made, for at most two minutes. It is an error
// if a table is missing, or has other keys than this package's.
func Open(ctx context.Context, o Options) (*Store, error) {
	s, err := newStore(o)
	if err != nil {
		return nil, err
	}
	if err := s.prepare(ctx, o.Create); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// newStore makes a store without a call to anybody.
func newStore(o Options) (*Store, error) {
	if !legalPrefix.MatchString(o.TablePrefix) {
		return nil, fmt.Errorf("dynamostore: the table prefix %q is not 1 to 240 letters, digits, `_`, `-` and `.`", o.TablePrefix)
	}
	if o.ScanUnitsPerSecond < 0 {
		return nil, fmt.Errorf("dynamostore: %d read units a second for scans", o.ScanUnitsPerSecond)
	}
	if err := checkRegion(o.Config); err != nil {
		return nil, err
	}
	units := cmp.Or(o.ScanUnitsPerSecond, DefaultScanUnits)
	client, idle := newHTTPClient(o.Config.HTTPClient)
	s := &Store{
		client: dynamodb.NewFromConfig(o.Config, func(c *dynamodb.Options) {
			c.HTTPClient, c.DisableValidateResponseChecksum = client, true // which sees to checksums
			c.Retryer, c.RetryMaxAttempts = aws.NopRetryer{}, 0            // 0 is not to put another number over the retryer's
		}),
		tables: tablesOf(o.TablePrefix),
		scans:  pacer{rate.NewLimiter(rate.Limit(units), units)},
		idle:   idle,
	}
	s.where = whereOf(s.client.Options())
	return s, nil
}

func whereOf(o dynamodb.Options) string {
	if o.BaseEndpoint == nil {
		return "region " + o.Region
	}
	if u, err := url.Parse(*o.BaseEndpoint); err == nil {
		return u.Redacted()
	}
	return "an endpoint that is no URL"
}

// Close lets go of the connections. Calls that come later are ErrClosed, except
// for Close itself; those under way go on. It never fails.
func (s *Store) Close() error {
	s.closed.Store(true)
	s.idle()
	return nil
}
