// Package deploy_test holds what Sendgate is deployed with to account: the
// images' files and docker-compose.yml are parsed by the code that runs them,
// the alerts are tried on made-up metrics by Prometheus' own rule engine, and
// the programs are built as the Dockerfile says and run in a root folder that
// has nothing in it but what the image has.
//
// It is a module of its own, so that parsers of other people's files are no
// dependencies of the product. `make engines` installs what it starts.
package deploy_test

import (
	"os"
	"testing"
	"time"
)

// root is the repository's folder, the build context of every image.
const root = ".."

// patience is how long something that is sure to happen may take on a machine
// that is busy with other tests.
const patience = time.Minute

// until waits for a condition.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for limit := time.After(patience); !holds(); {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
