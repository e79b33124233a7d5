// Package node puts one gate together from its parts and runs it: the change
// stream is followed, pending changes are swept, and the gate answers over
// HTTP. The programs in cmd choose the parts.
package node
