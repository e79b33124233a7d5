// Package sendgate holds the vocabulary of the notification gate and the Gate
// itself.
//
// The vocabulary is what every other package speaks: a [Check] asks whether
// one notification may go to one user on one channel now, a [Decision] answers
// it, the [Catalog] says which topics, channels and categories there are,
// [Preferences] are what a user has chosen, and [Consent] is the part of them
// that travels between gates. Every refusal is an [Error] with a [Code].
//
// The [Gate] runs the steps of a check in the order of the table in
// pipeline.go. It asks the world three questions, each behind an interface
// declared here: [Overlay] (who changed lately), [Records] (exact preferences)
// and [Caps] (frequency caps). The packages below implement them; this package
// imports none of them.
package sendgate
