package decisionlog

import "time"

// File is what a Log is written to.
type File = file

// OpenOn opens a Log that is written to what a function opens, soon.
func OpenOn(o Options, open func() (f File, torn bool, err error)) (*Log, error) {
	o.open, o.flush = open, 5*time.Millisecond
	return Open(o)
}
