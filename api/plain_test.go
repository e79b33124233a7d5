package api

import (
	"strings"
	"testing"
)

// What routers write all day does not need the decoder; that both understand
// the same is FuzzCheck's.
func TestPlainChecks(t *testing.T) {
	long := strings.Repeat("x", maxPlainBytes)
	for body, plain := range map[string]bool{
		benchBody:                                            true,
		checkOf("ü", "promotions", "push"):                   true,
		" \t\r\n" + benchBody + " \n":                        true,
		checkWith("priority", `"low"`):                       true,
		checkWith("attributes", `{}`):                        true,
		checkWith("attributes", `{"a":"b"}`):                 true,
		checkWith("attributes", ` { "a" : "b" , "c":"d" } `): true,

		checkWith("attributes", `{"a":"b","a":"c"}`):        false,
		checkWith("attributes", `{"a":1}`):                  false,
		checkWith("attributes", `{"a":"b",}`):               false,
		checkWith("attributes", `{"a":"b"}`) + "x":          false,
		checkWith("attributes", `{},"attributes":{}`):       false,
		checkWith("campaign_id", `"a","campaign_id":"a"`):   false,
		checkWith("campaign_id", `"a\u0062"`):               false,
		checkWith("campaign_id", `null`):                    false,
		checkWith("campaign_id", "\"a\x01\""):               false,
		checkWith("campaign_id", "\"a\xff\""):               false,
		checkWith("campaign_id", `"`+long+`"`):              false,
		checkWith("Campaign_id", `"a"`):                     false,
		checkWith("at", `"2026-12-01T03:00:00Z"`):           false,
		checkWith("priority", `""`):                         false,
		checkWith("priority", `"urgent"`):                   false,
		`{"notification_id":"n","user_id":"u","topic":"t"}`: false,
		`{}`:                                     false,
		``:                                       false,
		benchBody[:len(benchBody)-1]:             false,
		strings.Replace(benchBody, `"`, ``, 1):   false,
		strings.Replace(benchBody, `,`, `,,`, 1): false,
		strings.Replace(benchBody, `:`, ``, 1):   false,
		strings.Replace(benchBody, `"push"`, `"push`, 1): false,
	} {
		if _, ok := plainCheck([]byte(body)); ok != plain {
			t.Errorf("%.200s: %v, want %v", body, ok, plain)
		}
	}
}
