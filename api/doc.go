// Package api is the HTTP interface of Sendgate.
//
// It owns what callers see and nothing else: the routes, the form of bodies
// and of problems, the one table from error code to HTTP status, and
// openapi.yaml, which says all of it to machines. What is decided, and what is
// stored, happens in [sendgate.Gate], [prefs.Service] and [limits.Service].
//
// A request goes the same way everywhere: read the body within its limit,
// decode it strictly, call, encode. What is asked all day goes the same way by
// hand: plain checks are read, and decisions written, without reflection, and
// the answer to a batch is sent as it is decided. JSON that two readers could understand
// differently (a member given twice or spelled in another case, bytes that are
// not UTF-8) is refused, because a reader that repairs it merges users.
//
// Echo routes and nothing more; its types stay in routes.go and around.go.
//
// No log line and no metric label carries a user id, a path, a query or a
// body: a request is known by the pattern of its route and by its request id.
package api
