package history

import (
	"math/rand/v2"
	"testing"
)

// FuzzRows compares the versions of rows with the log of all of them.
func FuzzRows(f *testing.F) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		f.Add(randomBytes(rng, 200))
	}
	f.Fuzz(func(t *testing.T, choices []byte) {
		s := &script{choices}
		words, window := s.below(4), s.below(65)
		checkHistory(t, words, window, s)
	})
}
