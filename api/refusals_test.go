package api

import (
	"fmt"
	"strings"

	"github.com/sendgate/sendgate"
)

// refusal is a body and what it is refused with.
type refusal struct {
	name   string
	body   string
	status int
	code   sendgate.Code
	field  string
}

// checkWith is a check with one member changed or, by an empty text, taken out.
func checkWith(name, text string) string {
	members := []struct{ name, text string }{
		{"notification_id", `"n_1"`}, {"user_id", `"u_42"`}, {"topic", `"promotions"`}, {"channel", `"push"`},
	}
	var parts []string
	found := false
	for _, m := range members {
		if m.name == name {
			m.text, found = text, true
		}
		if m.text != "" {
			parts = append(parts, fmt.Sprintf("%q:%s", m.name, m.text))
		}
	}
	if !found {
		parts = append(parts, fmt.Sprintf("%q:%s", name, text))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// checkRefusals are refused alone and as an item of a batch.
var checkRefusals = []refusal{
	{"an array", `[]`, 400, sendgate.CodeMalformedJSON, ""},
	{"a string", `"x"`, 400, sendgate.CodeMalformedJSON, ""},
	{"null", `null`, 400, sendgate.CodeMalformedJSON, ""},
	{"unknown member", checkWith("colour", `"red"`), 400, sendgate.CodeUnknownField, "colour"},
	{"another case", checkWith("User_ID", `"u_43"`), 400, sendgate.CodeUnknownField, "User_ID"},
	{"member twice", `{"user_id":"a","user_id":"b","notification_id":"n","topic":"promotions","channel":"push"}`, 400, sendgate.CodeDuplicateField, "user_id"},
	{"member twice by an escape", `{"user_id":"a","user\u005fid":"b"}`, 400, sendgate.CodeDuplicateField, "user_id"},
	{"optional member twice", `{"priority":"low","priority":"low"}`, 400, sendgate.CodeDuplicateField, "priority"},
	{"attribute twice", checkWith("attributes", `{"region":"eu","region":"us"}`), 400, sendgate.CodeDuplicateField, "attributes.region"},
	{"number for a string", checkWith("topic", `7`), 400, sendgate.CodeMalformedJSON, "topic"},
	{"array for an object", checkWith("attributes", `[]`), 400, sendgate.CodeMalformedJSON, "attributes"},
	{"attribute that is a number", checkWith("attributes", `{"7":7}`), 400, sendgate.CodeMalformedJSON, "attributes.7"},
	{"attribute that is null", checkWith("attributes", `{"region":null}`), 400, sendgate.CodeMalformedJSON, "attributes.region"},
	{"optional member null", checkWith("campaign_id", `null`), 400, sendgate.CodeMalformedJSON, "campaign_id"},
	{"attributes null", checkWith("attributes", `null`), 400, sendgate.CodeMalformedJSON, "attributes"},
	{"priority null", checkWith("priority", `null`), 400, sendgate.CodeMalformedJSON, "priority"},
	{"no notification id", checkWith("notification_id", ""), 422, sendgate.CodeMissingField, "notification_id"},
	{"no user", checkWith("user_id", ""), 422, sendgate.CodeMissingField, "user_id"},
	{"no topic", checkWith("topic", ""), 422, sendgate.CodeMissingField, "topic"},
	{"no channel", checkWith("channel", ""), 422, sendgate.CodeMissingField, "channel"},
	{"nothing", `{}`, 422, sendgate.CodeMissingField, "notification_id"},
	{"null user", checkWith("user_id", `null`), 422, sendgate.CodeMissingField, "user_id"},
	{"empty user", checkWith("user_id", `""`), 400, sendgate.CodeInvalidUserID, "user_id"},
	{"control character in a user", checkWith("user_id", `"a\u0000b"`), 400, sendgate.CodeInvalidUserID, "user_id"},
	{"user too long", checkWith("user_id", `"`+strings.Repeat("u", 257)+`"`), 400, sendgate.CodeInvalidUserID, "user_id"},
	{"empty notification id", checkWith("notification_id", `""`), 400, sendgate.CodeInvalidNotificationID, "notification_id"},
	{"unknown topic", checkWith("topic", `"promo"`), 422, sendgate.CodeUnknownTopic, "topic"},
	{"unknown channel", checkWith("channel", `"fax"`), 422, sendgate.CodeUnknownChannel, "channel"},
	{"unknown priority", checkWith("priority", `"urgent"`), 422, sendgate.CodeInvalidField, "priority"},
	{"empty priority", checkWith("priority", `""`), 422, sendgate.CodeInvalidField, "priority"},
	{"campaign id too long", checkWith("campaign_id", `"`+strings.Repeat("c", 257)+`"`), 422, sendgate.CodeInvalidField, "campaign_id"},
	{"attribute's name", checkWith("attributes", `{"Region":"eu"}`), 422, sendgate.CodeInvalidField, "attributes.Region"},
}

// bodyRefusals are refused as a whole wherever a body is read.
var bodyRefusals = []refusal{
	{"only blanks", ` `, 400, sendgate.CodeMalformedJSON, ""},
	{"byte order mark", "\xef\xbb\xbf{}", 400, sendgate.CodeMalformedJSON, ""},
	{"cut off", `{`, 400, sendgate.CodeMalformedJSON, ""},
	{"trailing text", `{} x`, 400, sendgate.CodeMalformedJSON, ""},
	{"trailing object", `{}{}`, 400, sendgate.CodeMalformedJSON, ""},
	{"comment", `{/**/}`, 400, sendgate.CodeMalformedJSON, ""},
	{"bare word", `nul`, 400, sendgate.CodeMalformedJSON, ""},
	{"invalid UTF-8", "{\"user_id\":\"\xff\"}", 400, sendgate.CodeMalformedJSON, "user_id"},
	{"invalid UTF-8 in a name", "{\"us\xffer_id\":\"x\"}", 400, sendgate.CodeMalformedJSON, ""},
	{"lone surrogate", `{"user_id":"\ud800"}`, 400, sendgate.CodeMalformedJSON, "user_id"},
	{"surrogates the wrong way round", `{"user_id":"\udc00\ud800"}`, 400, sendgate.CodeMalformedJSON, "user_id"},
	{"raw control character", "{\"user_id\":\"\x01\"}", 400, sendgate.CodeMalformedJSON, "user_id"},
	{"NaN", `{"user_id":NaN}`, 400, sendgate.CodeMalformedJSON, "user_id"},
}

func setting(topic, channel, enabled string) string {
	return fmt.Sprintf(`{"preferences":[{"topic":%q,"channel":%q,"enabled":%s}]}`, topic, channel, enabled)
}

func quietHours(members string) string { return `{"quiet_hours":{` + members + `}}` }

func userCap(category, count, window string) string {
	return fmt.Sprintf(`{"frequency_caps":[{"category":%s,"max_count":%s,"window":%s}]}`, category, count, window)
}

var editRefusals = []refusal{
	{"an array", `[]`, 400, sendgate.CodeMalformedJSON, ""},
	{"unknown member", `{"preference":[]}`, 400, sendgate.CodeUnknownField, "preference"},
	{"another case", `{"Preferences":[]}`, 400, sendgate.CodeUnknownField, "Preferences"},
	{"member twice", `{"preferences":[],"preferences":[]}`, 400, sendgate.CodeDuplicateField, "preferences"},
	{"unknown member of an entry", `{"preferences":[{"topic":"promotions","channel":"push","enabled":false},{"topics":1}]}`, 400, sendgate.CodeUnknownField, "preferences[1].topics"},
	{"member of an entry twice", `{"preferences":[{"enabled":false,"enabled":true}]}`, 400, sendgate.CodeDuplicateField, "preferences[0].enabled"},
	{"preferences null", `{"preferences":null}`, 400, sendgate.CodeMalformedJSON, "preferences"},
	{"an entry null", `{"preferences":[null]}`, 400, sendgate.CodeMalformedJSON, "preferences[0]"},
	{"enabled a string", setting("promotions", "push", `"false"`), 400, sendgate.CodeMalformedJSON, "preferences[0].enabled"},
	{"enabled a number", setting("promotions", "push", `0`), 400, sendgate.CodeMalformedJSON, "preferences[0].enabled"},
	{"enabled missing", `{"preferences":[{"topic":"promotions","channel":"push"}]}`, 422, sendgate.CodeMissingField, "preferences[0].enabled"},
	{"topic missing", `{"preferences":[{"channel":"push","enabled":true}]}`, 422, sendgate.CodeMissingField, "preferences[0].topic"},
	{"channel null", `{"preferences":[{"topic":"promotions","channel":null,"enabled":true}]}`, 422, sendgate.CodeMissingField, "preferences[0].channel"},
	{"unknown topic", setting("promo", "push", "true"), 422, sendgate.CodeUnknownTopic, "preferences[0].topic"},
	{"unknown channel", setting("promotions", "fax", "true"), 422, sendgate.CodeUnknownChannel, "preferences[0].channel"},
	{"essential topic off", setting("security_alerts", "push", "false"), 422, sendgate.CodeEssentialTopic, "preferences[0].enabled"},
	{"the same entry twice", `{"preferences":[{"topic":"promotions","channel":"push","enabled":false},{"topic":"promotions","channel":"push","enabled":false}]}`, 422, sendgate.CodeDuplicateEntry, "preferences[1]"},

	{"quiet hours a string", `{"quiet_hours":"off"}`, 400, sendgate.CodeMalformedJSON, "quiet_hours"},
	{"unknown member of quiet hours", quietHours(`"zone":"UTC"`), 400, sendgate.CodeUnknownField, "quiet_hours.zone"},
	{"a day a number", quietHours(`"days":["mon",2]`), 400, sendgate.CodeMalformedJSON, "quiet_hours.days[1]"},
	{"a day null", quietHours(`"days":[null]`), 400, sendgate.CodeMalformedJSON, "quiet_hours.days[0]"},
	{"start null", quietHours(`"start":null`), 422, sendgate.CodeInvalidQuietHours, "quiet_hours.start"},
	{"end null", quietHours(`"end":null`), 422, sendgate.CodeInvalidQuietHours, "quiet_hours.end"},
	{"enabled null", quietHours(`"enabled":null`), 422, sendgate.CodeInvalidQuietHours, "quiet_hours.enabled"},
	{"timezone null", quietHours(`"timezone":null`), 422, sendgate.CodeInvalidQuietHours, "quiet_hours.timezone"},
	{"unknown day", quietHours(`"start":"22:00","end":"08:00","timezone":"UTC","days":["Mon"]`), 422, sendgate.CodeInvalidQuietHours, "quiet_hours.days"},
	{"a day twice", quietHours(`"start":"22:00","end":"08:00","timezone":"UTC","days":["mon","mon"]`), 422, sendgate.CodeInvalidQuietHours, "quiet_hours.days"},
	{"no end", quietHours(`"start":"22:00","timezone":"UTC"`), 422, sendgate.CodeMissingField, "quiet_hours.end"},
	{"no zone", quietHours(`"start":"22:00","end":"08:00"`), 422, sendgate.CodeMissingField, "quiet_hours.timezone"},

	{"caps an object", `{"frequency_caps":{}}`, 400, sendgate.CodeMalformedJSON, "frequency_caps"},
	{"max_count a string", userCap(`"marketing"`, `"5"`, `"24h"`), 400, sendgate.CodeMalformedJSON, "frequency_caps[0].max_count"},
	{"window a number", userCap(`"marketing"`, `5`, `86400`), 400, sendgate.CodeMalformedJSON, "frequency_caps[0].window"},
	{"max_count missing", `{"frequency_caps":[{"category":"marketing","window":"24h"}]}`, 422, sendgate.CodeMissingField, "frequency_caps[0].max_count"},
	{"window missing", `{"frequency_caps":[{"category":"marketing","max_count":5}]}`, 422, sendgate.CodeMissingField, "frequency_caps[0].window"},
	{"category null", userCap(`null`, `5`, `"24h"`), 422, sendgate.CodeMissingField, "frequency_caps[0].category"},
	{"unknown category", userCap(`"spam"`, `5`, `"24h"`), 422, sendgate.CodeUnknownCategory, "frequency_caps[0].category"},
	{"category that takes none", userCap(`"social"`, `5`, `"24h"`), 422, sendgate.CodeInvalidCap, "frequency_caps[0].category"},
	{"above the ceiling", userCap(`"marketing"`, `21`, `"24h"`), 422, sendgate.CodeInvalidCap, "frequency_caps[0].max_count"},
	{"below nothing", userCap(`"marketing"`, `-1`, `"24h"`), 422, sendgate.CodeInvalidCap, "frequency_caps[0].max_count"},
	{"a fraction", userCap(`"marketing"`, `1.5`, `"24h"`), 422, sendgate.CodeInvalidCap, "frequency_caps[0].max_count"},
	{"more than any number", userCap(`"marketing"`, `99999999999999999999`, `"24h"`), 422, sendgate.CodeInvalidCap, "frequency_caps[0].max_count"},
	{"window too long", userCap(`"marketing"`, `5`, `"32d"`), 422, sendgate.CodeInvalidCap, "frequency_caps[0].window"},
	{"the same cap twice", `{"frequency_caps":[{"category":"marketing","max_count":5,"window":"24h"},{"category":"marketing","max_count":6,"window":"1d"}]}`, 422, sendgate.CodeDuplicateEntry, "frequency_caps[1]"},

	{"another user", `{"user_id":"u_43"}`, 422, sendgate.CodeReadOnlyField, "user_id"},
	{"user a number", `{"user_id":42}`, 400, sendgate.CodeMalformedJSON, "user_id"},
	{"user null", `{"user_id":null}`, 400, sendgate.CodeMalformedJSON, "user_id"},
	{"revision a string", `{"revision":"1"}`, 400, sendgate.CodeMalformedJSON, "revision"},
	{"revision null", `{"revision":null}`, 400, sendgate.CodeMalformedJSON, "revision"},
	{"updated_at a number", `{"updated_at":1}`, 400, sendgate.CodeMalformedJSON, "updated_at"},
	{"another flag", `{"global_unsubscribe":true}`, 422, sendgate.CodeReadOnlyField, "global_unsubscribe"},
	{"flag a string", `{"global_unsubscribe":"false"}`, 400, sendgate.CodeMalformedJSON, "global_unsubscribe"},
	{"another hold", `{"holds":[{"source":"user","reason":"gdpr_request","retain_essential":true,"at":"2026-12-01T09:30:00.000Z"}]}`, 422, sendgate.CodeReadOnlyField, "holds"},
	{"half a hold", `{"holds":[{}]}`, 422, sendgate.CodeReadOnlyField, "holds"},
	{"unknown member of a hold", `{"holds":[{"until":"x"}]}`, 400, sendgate.CodeUnknownField, "holds[0].until"},
}
