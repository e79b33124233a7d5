// Package bloom owns what a gate knows of people's consent in its own memory.
// Here that is the [Overlay], the exact state of every user who changed
// lately; the filter of all opt-outs and its snapshots have their place beside
// it.
package bloom
