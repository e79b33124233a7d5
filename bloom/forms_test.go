package bloom

import (
	"testing"
)

func TestScratch(t *testing.T) {
	for _, r := range []float64{5e-4, 1e-4, 5e-7, 1e-6} {
		s := sizeFor(r)
		t.Log(r, s, s.rate())
	}
}
