package benchmarks

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/icza/bitio"
)

const (
	// So many values that no branch predictor learns their widths by heart, so few
	// that a loop over them often ends before the scheduler takes the core away.
	bitsValues = 1 << 16
	// The loops run in turn, so many times a round: the fastest of each counts, as
	// the one that was not interrupted. Of the rounds the median counts.
	bitsTurns  = 10
	bitsRounds = 7
	// What bitbuf promises: this many times faster, writing and reading, on any processor. It
	// depends on that: see README.md.
	bitsPromised = 5
)

// bitsWork is what both libraries write and read: values of 1 to 32 bits, the
// widths drawn at random.
type bitsWork struct {
	values []uint64
	widths []uint8
	size   int // bytes when packed
}

func newBitsWork() *bitsWork {
	rng := rand.New(rand.NewPCG(20, 32))
	w := &bitsWork{values: make([]uint64, bitsValues), widths: make([]uint8, bitsValues)}
	total := 0
	for i := range w.values {
		width := 1 + rng.IntN(32)
		w.widths[i] = uint8(width)
		w.values[i] = rng.Uint64() & (1<<width - 1)
		total += width
	}
	w.size = (total + 7) / 8
	return w
}

//go:noinline
func (w *bitsWork) writeBitbuf(buf []byte) ([]byte, error) {
	widths := w.widths[:len(w.values)]
	out := bitbuf.NewWriter(buf)
	for i, v := range w.values {
		out.WriteBits(v, uint(widths[i]))
	}
	return out.Bytes(), out.Err()
}

//go:noinline
func (w *bitsWork) writeBitio(buf *bytes.Buffer) ([]byte, error) {
	widths := w.widths[:len(w.values)]
	buf.Reset()
	out := bitio.NewWriter(buf)
	for i, v := range w.values {
		if err := out.WriteBits(v, widths[i]); err != nil {
			return nil, err
		}
	}
	err := out.Close()
	return buf.Bytes(), err
}

//go:noinline
func (w *bitsWork) readBitbuf(packed []byte, values []uint64) error {
	values = values[:len(w.widths)]
	in := bitbuf.NewReader(packed)
	for i, n := range w.widths {
		values[i] = in.ReadBits(uint(n))
	}
	return in.Err()
}

//go:noinline
func (w *bitsWork) readBitio(packed []byte, values []uint64) error {
	values = values[:len(w.widths)]
	in := bitio.NewReader(bytes.NewReader(packed))
	for i, n := range w.widths {
		v, err := in.ReadBits(n)
		if err != nil {
			return err
		}
		values[i] = v
	}
	return nil
}

// TestBitbufFasterThanBitio runs both libraries over the same values in one
// process, in turn, and holds bitbuf to its promise.
func TestBitbufFasterThanBitio(t *testing.T) {
	if raceDetector {
		t.Skip("speed ratios mean nothing under the race detector")
	}
	if testing.Short() {
		t.Skip("speed ratios are not measured with -short")
	}
	work := newBitsWork()
	buf := make([]byte, work.size)
	buffer := bytes.NewBuffer(make([]byte, 0, work.size+64))
	values := make([]uint64, bitsValues)

	var packed, packedBitio []byte
	loops := []struct {
		name string
		run  func() error
		read bool
	}{
		{"bitbuf writes", func() (err error) { packed, err = work.writeBitbuf(buf); return err }, false},
		{"bitio writes", func() (err error) { packedBitio, err = work.writeBitio(buffer); return err }, false},
		{"bitbuf reads", func() error { return work.readBitbuf(packed, values) }, true},
		{"bitio reads", func() error { return work.readBitio(packedBitio, values) }, true},
	}
	rounds := make([][]float64, len(loops)) // ns per value
	for range bitsRounds {
		fastest := make([]float64, len(loops))
		for turn := range bitsTurns {
			for i, loop := range loops {
				clear(values)
				start := time.Now()
				err := loop.run()
				ns := float64(time.Since(start).Nanoseconds()) / bitsValues
				if err != nil {
					t.Fatalf("%s: %v", loop.name, err)
				}
				if loop.read && !slices.Equal(values, work.values) {
					t.Fatalf("%s: not what was written", loop.name)
				}
				if turn == 0 || ns < fastest[i] {
					fastest[i] = ns
				}
			}
		}
		for i, ns := range fastest {
			rounds[i] = append(rounds[i], ns)
		}
	}
	if len(packed) != len(packedBitio) {
		t.Fatalf("bitbuf packs %d bytes, bitio %d: not the same work", len(packed), len(packedBitio))
	}
	median := func(i int) float64 {
		slices.Sort(rounds[i])
		return rounds[i][bitsRounds/2]
	}
	t.Logf("%-6s  %8s  %8s  %6s   (ns per value of 1..32 bits, median of %d)",
		"", "bitbuf", "bitio", "ratio", bitsRounds)
	for i, name := range []string{"write", "read"} {
		ours, theirs := median(2*i), median(2*i+1)
		t.Logf("%-6s  %8.2f  %8.2f  %5.1fx", name, ours, theirs, theirs/ours)
		if theirs/ours < bitsPromised {
			t.Errorf("%s: %.1f times as fast as bitio, promised are %d", name, theirs/ours, bitsPromised)
		}
	}
}

func perValue(b *testing.B) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/bitsValues, "ns/value")
	b.ReportMetric(0, "ns/op")
}

func BenchmarkWriteBitbuf(b *testing.B) {
	work := newBitsWork()
	buf := make([]byte, work.size)
	for b.Loop() {
		if _, err := work.writeBitbuf(buf); err != nil {
			b.Fatal(err)
		}
	}
	perValue(b)
}

func BenchmarkWriteBitio(b *testing.B) {
	work := newBitsWork()
	buffer := bytes.NewBuffer(make([]byte, 0, work.size+64))
	for b.Loop() {
		if _, err := work.writeBitio(buffer); err != nil {
			b.Fatal(err)
		}
	}
	perValue(b)
}

func BenchmarkReadBitbuf(b *testing.B) {
	work := newBitsWork()
	packed, err := work.writeBitbuf(make([]byte, work.size))
	if err != nil {
		b.Fatal(err)
	}
	values := make([]uint64, bitsValues)
	for b.Loop() {
		if err := work.readBitbuf(packed, values); err != nil {
			b.Fatal(err)
		}
	}
	perValue(b)
}

func BenchmarkReadBitio(b *testing.B) {
	work := newBitsWork()
	packed, err := work.writeBitio(bytes.NewBuffer(nil))
	if err != nil {
		b.Fatal(err)
	}
	values := make([]uint64, bitsValues)
	for b.Loop() {
		if err := work.readBitio(packed, values); err != nil {
			b.Fatal(err)
		}
	}
	perValue(b)
}
