package api

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/sendgate/sendgate"
)

func TestIfMatch(t *testing.T) {
	st := newStack(t)
	st.do("PUT", prefsURL, optOut).ok()
	edit := func(i int) string { return setting("promotions", "sms", []string{"true", "false"}[i%2]) }
	for i, c := range []struct {
		header string
		status int
	}{
		{`"%d"`, 200}, {` "%d" `, 200}, {`*`, 200}, {`"0", "%d"`, 200}, {`"%d","999"`, 200}, {`W/"1","%d"`, 200}, {`"a,b" , "%d"`, 200}, {`,"%d",`, 200},
		{`"0"`, 412}, {`"999"`, 412}, {`W/"%d"`, 412}, {`"0%d"`, 412}, {`"+%d"`, 412}, {`""`, 412}, {`"seven"`, 412}, {`"0","999"`, 412}, {`"9999999999999999999999"`, 412},
		{`%d`, 400}, {`"%d`, 400}, {`%d"`, 400}, {`w/"%d"`, 400}, {`"%d" "0"`, 400}, {`*,"%d"`, 400}, {`"%d",*`, 400}, {`,`, 400}, {`"a b"`, 400}, {`'%d'`, 400},
	} {
		before := st.revision(user)
		header := strings.ReplaceAll(c.header, "%d", fmt.Sprint(before))
		a := st.do("PATCH", prefsURL, edit(i), "If-Match", header)
		switch c.status {
		case 200:
			if a.ok(); a.header.Get("ETag") != fmt.Sprintf(`"%v"`, before+1) {
				t.Errorf("%s: ETag %s after %v", header, a.header.Get("ETag"), before)
			}
			continue
		case 412:
			a.refused(412, sendgate.CodeRevisionMismatch, "If-Match")
		default:
			a.refused(400, sendgate.CodeInvalidField, "If-Match")
		}
		if after := st.revision(user); after != before {
			t.Errorf("%s: revision %v after %v", header, after, before)
		}
	}
	// A header on several lines is one list.
	st.do("PATCH", prefsURL, edit(0), "If-Match", `"0"`, "If-Match", fmt.Sprintf(`"%v"`, st.revision(user))).ok()
	// Nobody has seen this user, and there is a document all the same.
	st.do("PATCH", "/v1/users/new/preferences", optOut, "If-Match", "*").ok()
	st.do("PATCH", "/v1/users/newer/preferences", optOut, "If-Match", `"0"`).ok()
}

// Of many who race with a list of the same revisions, one has each.
func TestAListOfRevisionsStaysAtomic(t *testing.T) {
	st := newStack(t)
	var wg sync.WaitGroup
	got := make([]*answer, 12)
	for i := range got {
		wg.Go(func() {
			got[i] = st.do("PATCH", prefsURL, userCap(`"marketing"`, `5`, fmt.Sprintf(`"%ds"`, i+1)), "If-Match", `"0", "1", "2"`)
		})
	}
	wg.Wait()
	made := 0
	for _, a := range got {
		if a.status == 200 {
			made++
		} else {
			a.refused(412, sendgate.CodeRevisionMismatch, "If-Match")
		}
	}
	if r := st.revision(user); made != 3 || r != 3 {
		t.Errorf("%d edits made, revision %v; want 3", made, r)
	}
}
