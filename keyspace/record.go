package keyspace

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// A record key holds one of two things, told apart by the first byte:
//
//	R<revision> <body>     a user's record at a revision; the body is opaque here
//	L<token>               a lease: whoever was given the token may fill the key
//
// The Lua scripts that touch the key read the same two forms.
const (
	recordMark = "R"
	leaseMark  = "L"
)

// RecordValue is what a record key holds once it is filled.
func RecordValue(revision int64, body []byte) string {
	return recordMark + strconv.FormatInt(revision, 10) + " " + string(body)
}

// LeaseValue is what a record key holds while the owner of the token reads the
// store.
func LeaseValue(token string) string { return leaseMark + token }

// ParseRecordValue takes a filled record key apart. ok is false for a lease
// and for anything else that is not a record.
func ParseRecordValue(value string) (revision int64, body string, ok bool) {
	rest, ok := strings.CutPrefix(value, recordMark)
	if !ok {
		return 0, "", false
	}
	digits, body, ok := strings.Cut(rest, " ")
	if !ok || strings.Trim(digits, "0123456789") != "" { // the scripts know no signs
		return 0, "", false
	}
	revision, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0, "", false
	}
	return revision, body, true
}

// MaxRecordTTL is the longest that a record stays in Redis without being
// written again.
const MaxRecordTTL = time.Hour

// RecordTTL is how long a record that is written now stays: three quarters of
// MaxRecordTTL to all of it, at random, so that records written together do
// not all expire together.
func RecordTTL() time.Duration {
	return MaxRecordTTL*3/4 + rand.N(MaxRecordTTL/4)
}
