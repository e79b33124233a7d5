package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/caarlos0/env/v11"

	"github.com/sendgate/sendgate"
)

// override puts the values of the environment over those of the file. An empty
// variable is one that is not set. It returns the variables that were used, by
// the path of the member.
//
// A variable that begins with EnvPrefix and is nobody's is left alone, as
// others name theirs so too: Kubernetes gives every process the addresses of a
// service called sendgate in that form. One that is nearly the name of a value
// is a slip, and is refused.
func override(c *Config, environment map[string]string) (used map[string]string, err error) {
	if c.Store.DynamoDB == nil { // the library passes by what is not there
		c.Store.DynamoDB = &DynamoDB{}
		defer func() {
			if !anyBegins(used, variable("store.dynamodb")+"_") {
				c.Store.DynamoDB = nil
			}
		}()
	}
	params, err := env.GetFieldParamsWithOptions(c, env.Options{Prefix: EnvPrefix, Environment: map[string]string{}})
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, p := range params {
		if p.OwnKey != "" {
			known[p.Key] = true
		}
	}
	used = map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(environment)) {
		value := environment[name]
		switch {
		case !strings.HasPrefix(name, EnvPrefix):
		case !known[name]:
			if meant := nearly(name, known); meant != "" && !isPort(name) {
				return nil, fmt.Errorf("environment: %s overrides nothing; is %s meant?", name, meant)
			}
		case value != "":
			// One at a time, as the library's errors do not name the variable.
			if err := env.ParseWithOptions(c, env.Options{Prefix: EnvPrefix, Environment: map[string]string{name: value}}); err != nil {
				return nil, fmt.Errorf("environment: %s: %q is not understood: %w", name, shownValue(name, value), err)
			}
			used[name] = value
		}
	}
	return used, nil
}

func anyBegins(used map[string]string, prefix string) bool {
	for name := range used {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// isPort tells whether a name is one that Kubernetes makes: of a service
// called sendgate-filter it would be a slip of SENDGATE_FILTER_POLL otherwise.
// No member of the configuration is a port.
func isPort(name string) bool { return strings.HasSuffix(name, "_PORT") }

// shownValue is a variable's value as an error may show it.
func shownValue(name, value string) string {
	if strings.HasSuffix(name, "PASSWORD") {
		return "…"
	}
	return sendgate.Clip(value)
}

// variable is the variable that overrides a member.
func variable(path string) string {
	path, _, _ = strings.Cut(path, "[")
	return EnvPrefix + strings.ToUpper(strings.ReplaceAll(path, ".", "_"))
}

// mostSlips is how many characters may be wrong in a name for it to count as
// one that was meant.
const mostSlips = 2

// nearly finds the known name that another is nearly, or none.
func nearly(name string, known map[string]bool) (meant string) {
	least := mostSlips + 1
	for _, k := range slices.Sorted(maps.Keys(known)) {
		if d := distance(name, k); d < least {
			meant, least = k, d
		}
	}
	return meant
}

// distance is the least number of characters to insert, delete or replace to
// make one text of another.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, diagonal+1, row[j]+1)
		}
	}
	return row[len(b)]
}
