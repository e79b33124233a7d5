// Package bloom owns what a gate knows of people's consent in its own memory:
// the [Overlay], the exact state of every user who changed lately, and the
// [Live] filter of everybody, a [Snapshot] that [Build] makes of the store. The
// [Keeper] swaps snapshots and sees to it that both together miss nothing, and
// the [Sampler] finds out how often a snapshot is mistaken.
package bloom
