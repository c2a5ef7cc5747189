package bitbuf

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
)

var errTest = errors.New("a decoder above refuses the input")

// FuzzReader reads any bytes with any program and compares every value, position
// and error with the bit-by-bit oracle.
func FuzzReader(f *testing.F) {
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 32 {
		f.Add(randomScript(rng, i), randomScript(rng, 40))
	}
	f.Add(make([]byte, 40), []byte{byte(opExpGolomb), 0, byte(opRice), 63, byte(opUvarint), 0})
	f.Fuzz(func(t *testing.T, buf, script []byte) {
		checkRead(t, parseProgram(script), buf)
	})
}

// FuzzRoundTrip writes any program into a buffer of any small size, compares
// every step with the oracle, and reads the result back.
func FuzzRoundTrip(f *testing.F) {
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range 32 {
		f.Add(randomScript(rng, 8*i), uint16(i*i))
	}
	f.Fuzz(func(t *testing.T, script []byte, room uint16) {
		checkRoundTrip(t, parseProgram(script), int(room%2048))
	})
}

// TestRandomProgramsMatchTheOracle is FuzzRoundTrip and FuzzReader on fresh
// random programs.
func TestRandomProgramsMatchTheOracle(t *testing.T) {
	for range 300 {
		seed := rand.Uint64()
		t.Run(fmt.Sprintf("seed=%#x", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 0))
			ops := parseProgram(randomScript(rng, 200))
			checkRoundTrip(t, ops, 4096)
			checkRoundTrip(t, ops, rng.IntN(200))
			checkRead(t, ops, randomScript(rng, rng.IntN(80)))
			checkRead(t, ops, make([]byte, rng.IntN(80)))
		})
	}
}

// TestOverflowAtEveryLength lets programs overflow at each byte of their length.
func TestOverflowAtEveryLength(t *testing.T) {
	for range 20 {
		seed := rand.Uint64()
		t.Run(fmt.Sprintf("seed=%#x", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			ops := parseProgram(randomScript(rng, 60))
			_, packed := checkWrite(t, ops, 4096)
			for room := range len(packed) + 2 {
				checkRoundTrip(t, ops, room)
			}
		})
	}
}

// TestOverrunAtEveryLength cuts programs off at each byte of their length.
func TestOverrunAtEveryLength(t *testing.T) {
	for range 20 {
		seed := rand.Uint64()
		t.Run(fmt.Sprintf("seed=%#x", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 2))
			written, packed := checkWrite(t, parseProgram(randomScript(rng, 60)), 4096)
			for n := range len(packed) + 1 {
				checkRead(t, written, packed[:n:n])
			}
		})
	}
}
