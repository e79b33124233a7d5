package storm_test

import (
	"context"

	"github.com/sendgate/sendgate/internal/redistest"
)

func (f *fleet) commands() redistest.Commands {
	f.t.Helper()
	return redistest.CommandsOf(f.t, f.client)
}

// streamed is how many entries the change streams have, all together and the
// longest.
func (f *fleet) streamed() (all, longest int64) {
	f.t.Helper()
	for p := range partitions {
		n, err := f.client.XLen(context.Background(), f.space.Stream(p)).Result()
		if err != nil {
			f.t.Fatal(err)
		}
		all, longest = all+n, max(longest, n)
	}
	return all, longest
}
