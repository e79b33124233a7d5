// Package keyspace owns the names and the forms of what Sendgate keeps in
// Redis: which partition a user belongs to, how every key is built, and what a
// record key can hold. No other package builds a key.
//
// All keys of a user, and the change stream of the user's partition, carry the
// partition's hash tag, so that in a cluster one script can touch them all:
//
//	ns:{17}:rec:USER                  the record, or a lease to fill it
//	ns:{17}:cap:USER                  what frequency caps have charged, of a user
//	ns:{17}:cap…                      and of what else they count for
//	ns:{17}:changes                   the stream of changes of partition 17
//	ns:changes                        the channel on which changes are announced
//	ns:sweepers                       the gates that sweep, when each last said so
package keyspace

import (
	"fmt"
	"regexp"
	"strconv"

	"github.com/cespare/xxhash/v2"

	"github.com/sendgate/sendgate"
)

// The bounds of a space.
const (
	DefaultNamespace  = "sendgate"
	DefaultPartitions = 256
	MaxPartitions     = 4096
)

var namespaceName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,31}$`)

// Space is one installation's share of Redis. The number of partitions is
// fixed when its store is created; every process must use the same.
type Space struct {
	namespace string
	prefixes  []string // by partition, `ns:{17}:`
}

// New makes the space of a namespace (1 to 32 of a-z, 0-9, _ and -) of 1 to
// MaxPartitions partitions.
func New(namespace string, partitions int) (*Space, error) {
	if !namespaceName.MatchString(namespace) {
		return nil, fmt.Errorf("namespace %q: must be 1 to 32 of a-z, 0-9, _ and -", namespace)
	}
	if partitions < 1 || partitions > MaxPartitions {
		return nil, fmt.Errorf("partitions %d: must be from 1 to %d", partitions, MaxPartitions)
	}
	s := &Space{namespace: namespace, prefixes: make([]string, partitions)}
	for p := range s.prefixes {
		s.prefixes[p] = namespace + ":{" + strconv.Itoa(p) + "}:"
	}
	return s, nil
}

// Partitions is the number of partitions.
func (s *Space) Partitions() int { return len(s.prefixes) }

// Partition is the slice of the users that a user belongs to: the 64-bit
// xxHash of the id, modulo the number of partitions.
func (s *Space) Partition(user sendgate.UserID) int {
	return int(xxhash.Sum64String(string(user)) % uint64(len(s.prefixes)))
}

// Record is the key of a user's record.
func (s *Space) Record(user sendgate.UserID) string {
	return s.prefixes[s.Partition(user)] + "rec:" + string(user)
}

// Caps is the key of what a subject of frequency caps has been charged: a user,
// where the field is empty, or what another field of a check names. Subjects
// belong to partitions as users do.
func (s *Space) Caps(subject sendgate.Field, id string) string {
	if subject == "" {
		return s.prefixes[s.Partition(sendgate.UserID(id))] + "cap:" + id
	}
	return s.prefixes[s.Partition(sendgate.UserID(string(subject)+separator+id))] + "cap" + separator + string(subject) + separator + id
}

// separator stands between the parts of a key. No id may contain a control
// character, so that no two subjects share a key.
const separator = "\x1f"

// Stream is the key of a partition's change stream.
func (s *Space) Stream(partition int) string { return s.prefixes[partition] + "changes" }

// Channel is the channel on which the changes of every partition are
// announced.
func (s *Space) Channel() string { return s.namespace + ":changes" }

// Sweepers is the key of the set of gates that sweep what is pending. It belongs
// to no partition.
func (s *Space) Sweepers() string { return s.namespace + ":sweepers" }
