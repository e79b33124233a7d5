package freqcap_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/sendgate/sendgate/freqcap"
)

// code is the script without its comments.
func code() string {
	return regexp.MustCompile(`(?m)--.*$`).ReplaceAllString(freqcap.ChargeLua, "")
}

func TestTheScriptReadsOneClockOnce(t *testing.T) {
	if n := strings.Count(code(), "TIME"); n != 1 {
		t.Errorf("TIME stands %d times in the script", n)
	}
}

// The embedded Redis lacks some of what Lua has in a real one.
func TestTheScriptUsesWhatEveryRedisHas(t *testing.T) {
	if found := regexp.MustCompile(`\b(struct|cmsgpack|bit|cjson|os|redis\.(setresp|breakpoint|debug|acl_check_cmd))\b`).FindString(code()); found != "" {
		t.Errorf("the script uses %s", found)
	}
	if !strings.HasPrefix(freqcap.ChargeLua, "-- ") {
		t.Error("the script has no header")
	}
	for _, word := range []string{"KEYS ", "ARGV[1]", "Result:"} {
		if !strings.Contains(strings.Split(freqcap.ChargeLua, "\n\n")[0], word) {
			t.Errorf("the header does not explain %s", word)
		}
	}
}
