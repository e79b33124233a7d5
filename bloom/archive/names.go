package archive

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// digits is how many a generation is written with, so that keys sort by it.
// More than the 19 of the greatest one, so that there is never one too few.
const digits = 20

const extension = ".filter"

// namespaceName is the rule for namespaces everywhere. Here it also sees to it
// that a key is one plain file name, and that it never begins with the dot of a
// stage.
var namespaceName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,31}$`)

// names makes and reads the keys of one namespace.
type names struct{ namespace string }

func newNames(namespace string) (names, error) {
	if !namespaceName.MatchString(namespace) {
		return names{}, fmt.Errorf("namespace %q: must be 1 to 32 of a-z, 0-9, _ and -, a letter or a digit first", namespace)
	}
	return names{namespace}, nil
}

// prefix is what all keys of the namespace begin with. So may those of others:
// "a-" begins the keys of "a" and of "a-b".
func (n names) prefix() string { return n.namespace + "-" }

func (n names) key(generation int64) string {
	return fmt.Sprintf("%s%0*d%s", n.prefix(), digits, generation, extension)
}

// maxGeneration is far beyond what is ever published: one that is not ours must
// not leave the next ones without a number.
const maxGeneration = 1 << 60

// generation reads a key, and tells whether it is one of this namespace.
func (n names) generation(key string) (int64, bool) {
	rest, ours := strings.CutPrefix(key, n.prefix())
	number, named := strings.CutSuffix(rest, extension)
	if !ours || !named || len(number) != digits {
		return 0, false
	}
	generation, err := strconv.ParseInt(number, 10, 64)
	// Written again it must be the same: a sign is read, but never written.
	return generation, err == nil && generation > 0 && generation <= maxGeneration && n.key(generation) == key
}
