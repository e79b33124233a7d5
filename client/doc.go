// Package client asks a gate, for the programs that send notifications. It owns
// what happens on the caller's side of the interface: one [Client.Check] before
// each notification, or [Client.CheckAll] for a list of candidates, and a
// [Client.Report] of what became of it.
//
// A check that is alone is sent at once. While requests are under way, the
// checks of other goroutines are collected, and sent together by the next one.
// A caller who gives up takes nothing from the others of its batch.
//
// Every check has an answer within its time limit. Where no gate can be asked,
// the client decides as the check's category says (`on_unverifiable`), with the
// rules and the code of a gate that reaches neither Redis nor the store:
//
//   - `allow`, as transactional and essential categories say unless told
//     otherwise: the notification may go. If one of the caps that apply to the
//     check says `suppress`, it may not.
//   - `suppress`, as marketing categories say: it may not go, and RetryAt says
//     when it is worth asking again.
//   - The operator's allowed hours are kept, in the catalog's default zone. The
//     user's own choices are not known.
//   - A topic or channel that the client's catalog does not have, and every
//     check of a client that has no catalog yet, is suppressed. Give a catalog
//     in [Options], so that a client which starts while the gates are down
//     knows better.
//
// Such a decision is Degraded, says so in ByClient and Cause, and is counted in
// [Client.Stats]. It has taken no slot under the frequency caps: have
// [Decision.Outcome] make the report, so that the delivery is counted after all,
// once. What a gate refuses because it is wrong is an error, a *sendgate.Error
// or sendgate.Errors, and never a decision.
package client
