package freqcap_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/sendgate/sendgate/freqcap"
)

// code is a script without its comments.
func code(name string) string {
	return regexp.MustCompile(`(?m)--.*$`).ReplaceAllString(freqcap.Scripts[name], "")
}

func TestTheScriptsReadOneClockOnce(t *testing.T) {
	for name, want := range map[string]int{"presumed.lua": 0, "record.lua": 1, "slots.lua": 0, "judge.lua": 0, "settle.lua": 0, "write.lua": 0} {
		if n := strings.Count(code(name), "TIME"); n != want {
			t.Errorf("TIME stands %d times in %s", n, name)
		}
	}
}

// The embedded Redis lacks some of what Lua has in a real one.
func TestTheScriptsUseWhatEveryRedisHas(t *testing.T) {
	for name, source := range freqcap.Scripts {
		if found := regexp.MustCompile(`\b(struct|cmsgpack|bit|cjson|os|redis\.(setresp|breakpoint|debug|acl_check_cmd))\b`).FindString(code(name)); found != "" {
			t.Errorf("%s uses %s", name, found)
		}
		if !strings.HasPrefix(source, "-- ") {
			t.Errorf("%s has no header", name)
		}
	}
	for _, name := range []string{"judge.lua", "settle.lua"} {
		for _, word := range []string{"ARGV", "Result:"} {
			if !strings.Contains(strings.Split(freqcap.Scripts[name], "\n\n")[0], word) {
				t.Errorf("the header of %s does not explain %s", name, word)
			}
		}
	}
}
