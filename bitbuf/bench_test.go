package bitbuf

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// Enough values for branch predictors to find no pattern in the random ones.
const benchValues = 1 << 16

// benchWork draws values of minWidth to maxWidth bits.
func benchWork(minWidth, maxWidth int) (values []uint64, widths []uint8, size int) {
	rng := rand.New(rand.NewPCG(1, 32))
	values, widths = make([]uint64, benchValues), make([]uint8, benchValues)
	for i := range values {
		n := minWidth + rng.IntN(maxWidth-minWidth+1)
		widths[i] = uint8(n)
		values[i] = rng.Uint64() & lowBits[n]
		size += n
	}
	return values, widths, (size + 7) / 8
}

func perValue(b *testing.B, n int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/value")
	b.ReportMetric(0, "ns/op")
}

var benchWidths = [][2]int{{1, 32}, {10, 10}, {1, 64}}

func BenchmarkWriteBits(b *testing.B) {
	for _, w := range benchWidths {
		b.Run(fmt.Sprintf("%d..%d", w[0], w[1]), func(b *testing.B) {
			values, widths, size := benchWork(w[0], w[1])
			buf := make([]byte, size)
			for b.Loop() {
				out := NewWriter(buf)
				for i, n := range widths[:len(values)] {
					out.WriteBits(values[i], uint(n))
				}
				if out.Err() != nil {
					b.Fatal(out.Err())
				}
			}
			perValue(b, benchValues)
		})
	}
}

func BenchmarkReadBits(b *testing.B) {
	for _, w := range benchWidths {
		b.Run(fmt.Sprintf("%d..%d", w[0], w[1]), func(b *testing.B) {
			values, widths, size := benchWork(w[0], w[1])
			out := NewWriter(make([]byte, size))
			for i, n := range widths {
				out.WriteBits(values[i], uint(n))
			}
			packed := out.Bytes()
			for b.Loop() {
				in := NewReader(packed)
				var sum uint64
				for _, n := range widths {
					sum += in.ReadBits(uint(n))
				}
				if in.Err() != nil || sum == 0 {
					b.Fatal(in.Err())
				}
			}
			perValue(b, benchValues)
		})
	}
}

func BenchmarkBool(b *testing.B) {
	values, _, _ := benchWork(1, 1)
	buf := make([]byte, benchValues/8)
	b.Run("write", func(b *testing.B) {
		for b.Loop() {
			out := NewWriter(buf)
			for _, v := range values {
				out.WriteBool(v != 0)
			}
		}
		perValue(b, benchValues)
	})
	b.Run("read", func(b *testing.B) {
		var bits [benchValues]bool
		for b.Loop() {
			in := NewReader(buf)
			for i := range bits {
				bits[i] = in.ReadBool()
			}
		}
		perValue(b, benchValues)
	})
}

// BenchmarkWriteRun copies encoded bits into packets of 1200 bytes until they
// are full.
func BenchmarkWriteRun(b *testing.B) {
	for _, n := range []int{20, 60, 64, 120, 200, 1000} {
		b.Run(fmt.Sprintf("%dbits", n), func(b *testing.B) {
			src := randomScript(rand.New(rand.NewPCG(5, 6)), (n+7)/8)
			buf := make([]byte, 1200)
			runs := (len(buf)*8 - 3) / n
			for b.Loop() {
				out := NewWriter(buf)
				out.WriteBits(5, 3)
				for range runs {
					out.WriteRun(src, n)
				}
				if out.Err() != nil {
					b.Fatal(out.Err())
				}
			}
			perValue(b, runs)
		})
	}
}

// BenchmarkCodes writes and reads values whose sizes fall off geometrically.
func BenchmarkCodes(b *testing.B) {
	rng := rand.New(rand.NewPCG(7, 8))
	values := make([]uint64, benchValues)
	for i := range values {
		values[i] = uint64(rng.ExpFloat64() * 12)
	}
	buf := make([]byte, benchValues*4)
	for _, code := range []struct {
		name  string
		write func(*Writer, uint64)
		read  func(*Reader) uint64
	}{
		{"uvarint", (*Writer).WriteUvarint, (*Reader).ReadUvarint},
		{
			"expgolomb3",
			func(w *Writer, v uint64) { w.WriteExpGolomb(v, 3) },
			func(r *Reader) uint64 { return r.ReadExpGolomb(3) },
		},
		{
			"rice3",
			func(w *Writer, v uint64) { w.WriteRice(v, 3) },
			func(r *Reader) uint64 { return r.ReadRice(3) },
		},
	} {
		var packed []byte
		b.Run(code.name+"/write", func(b *testing.B) {
			for b.Loop() {
				out := NewWriter(buf)
				for _, v := range values {
					code.write(&out, v)
				}
				packed = out.Bytes()
			}
			perValue(b, benchValues)
		})
		b.Run(code.name+"/read", func(b *testing.B) {
			for b.Loop() {
				in := NewReader(packed)
				for range values {
					code.read(&in)
				}
			}
			perValue(b, benchValues)
		})
	}
}
