package bitbuf

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

type field struct {
	v uint64
	n uint
}

func TestLayoutIsLowBitFirst(t *testing.T) {
	for _, c := range []struct {
		name   string
		fields []field
		want   []byte
	}{
		{"nothing", nil, []byte{}},
		{"width 0", []field{{7, 0}}, []byte{}},
		{"the drawing in the package comment", []field{{0b101, 3}, {0b01, 2}, {0b1100110, 7}}, []byte{0b1100_1101, 0b0000_1100}},
		{"one bit", []field{{1, 1}}, []byte{1}},
		{"a byte", []field{{0xa5, 8}}, []byte{0xa5}},
		{"little-endian across bytes", []field{{0x1234, 16}}, []byte{0x34, 0x12}},
		{"bits above the width are ignored", []field{{0xfff, 4}, {0, 4}}, []byte{0x0f}},
		{"64 bits", []field{{0x8877665544332211, 64}}, []byte{0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88}},
		{"64 bits after 4", []field{{0xf, 4}, {0x8877665544332211, 64}}, []byte{0x1f, 0x21, 0x32, 0x43, 0x54, 0x65, 0x76, 0x87, 0x08}},
		{"64 bits after 63", []field{{0, 63}, {1<<63 | 1, 64}}, []byte{0, 0, 0, 0, 0, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0, 0x40}},
		{"an 18-bit entity", []field{{100, 7}, {300, 9}, {1, 1}, {0, 1}}, []byte{0x64, 0x96, 0x01}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := NewWriter(make([]byte, len(c.want)))
			bits := uint(0)
			for _, f := range c.fields {
				w.WriteBits(f.v, f.n)
				bits += f.n
			}
			if len(c.want) > 0 { // a Writer without room has overflowed from the start
				require.NoError(t, w.Err())
			}
			require.Equal(t, int(bits), w.Len())
			require.Equal(t, c.want, w.Bytes())

			r := NewReader(c.want)
			for _, f := range c.fields {
				require.Equal(t, f.v&lowBits[f.n], r.ReadBits(f.n))
			}
			require.NoError(t, r.Finish())
		})
	}
}

func TestEveryWidthAtEveryPosition(t *testing.T) {
	const v = 0x9e3779b97f4a7c15 // both ends of every width are ones somewhere
	for skip := range uint(130) {
		for n := range uint(65) {
			buf := make([]byte, (skip+n+7)/8)
			w := NewWriter(buf)
			for left := skip; left > 0; left -= min(left, 64) {
				w.WriteBits(^uint64(0), min(left, 64))
			}
			w.WriteBits(v, n)
			if len(buf) > 0 {
				require.NoError(t, w.Err())
			}
			r := NewReader(w.Bytes())
			for left := skip; left > 0; left -= min(left, 64) {
				require.Equal(t, lowBits[min(left, 64)], r.ReadBits(min(left, 64)))
			}
			require.Equal(t, v&lowBits[n], r.ReadBits(n), "%d bits at position %d", n, skip)
			require.NoError(t, r.Finish())
		}
	}
}

func TestOverflowWritesNothingAndSticks(t *testing.T) {
	for _, c := range []struct {
		name  string
		write func(*Writer)
	}{
		{"bits", func(w *Writer) { w.WriteBits(0xff, 6) }},
		{"bytes", func(w *Writer) { w.WriteBytes([]byte{1}) }},
		{"run", func(w *Writer) { w.WriteRun([]byte{0xff}, 6) }},
		{"unary", func(w *Writer) { w.WriteUnary(6, 7) }},
		{"truncated", func(w *Writer) { w.WriteTruncated(99, 100) }},
		{"unary limit", func(w *Writer) { w.WriteUnary(7, 7) }},
		{"uvarint", func(w *Writer) { w.WriteUvarint(0) }},
		{"long uvarint", func(w *Writer) { w.WriteUvarint(1 << 63) }},
		{"exp-golomb", func(w *Writer) { w.WriteExpGolomb(20, 0) }},
		{"long exp-golomb", func(w *Writer) { w.WriteExpGolomb(1<<63, 0) }},
		{"exp-golomb of which the prefix fits", func(w *Writer) { w.WriteExpGolomb(1<<63, 63) }},
		{"rice", func(w *Writer) { w.WriteRice(9, 0) }},
		{"escaped rice", func(w *Writer) { w.WriteRice(99, 0) }},
		{"long rice", func(w *Writer) { w.WriteRice(1<<63, 60) }},
		{"rice of which the prefix fits", func(w *Writer) { w.WriteRice(1<<63, 63) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := NewWriter(make([]byte, 1))
			w.WriteBits(0b101, 3)
			require.Equal(t, 5, w.Remaining())
			m := w.Mark()

			c.write(&w)
			require.ErrorIs(t, w.Err(), ErrOverflow)
			require.Equal(t, 3, w.Len())
			require.Zero(t, w.Remaining())
			require.Equal(t, []byte{0b101}, w.Bytes())

			w.WriteBool(true) // would fit
			w.Align()
			require.Equal(t, 3, w.Len())
			require.Equal(t, []byte{0b101}, w.Bytes())
			require.ErrorIs(t, w.Err(), ErrOverflow)

			late := w.Mark()
			w.Rollback(late)
			require.ErrorIs(t, w.Err(), ErrOverflow, "the mark was taken after the overflow")

			w.Rollback(m)
			require.NoError(t, w.Err())
			require.Equal(t, 5, w.Remaining())
			w.WriteBits(0b11111, 5)
			require.NoError(t, w.Err())
			require.Equal(t, []byte{0b11111_101}, w.Bytes())
		})
	}
}

func TestAFullWriterHasNotOverflowed(t *testing.T) {
	for n := 1; n < 20; n++ {
		w := NewWriter(make([]byte, n))
		for range n {
			w.WriteBits(0xff, 8)
		}
		w.WriteBits(0, 0)
		w.Align()
		w.WriteBytes(nil)
		w.WriteRun(nil, 0)
		require.NoError(t, w.Err())
		require.Zero(t, w.Remaining())
		w.WriteBool(false)
		require.ErrorIs(t, w.Err(), ErrOverflow)
		require.Equal(t, 8*n, w.Len())
	}
}

func TestZeroWriterWritesNowhere(t *testing.T) {
	var w Writer
	require.ErrorIs(t, w.Err(), ErrOverflow)
	w.WriteBits(1, 1)
	w.WriteBool(true)
	w.WriteBytes([]byte{1})
	w.WriteUvarint(0)
	w.WriteBits(0, 0)
	require.ErrorIs(t, w.Err(), ErrOverflow)
	require.Zero(t, w.Len())
	require.Zero(t, w.Remaining())
	require.Empty(t, w.Bytes())

	w.Reset(make([]byte, 1))
	require.NoError(t, w.Err())
	w.WriteBits(3, 2)
	require.Equal(t, []byte{3}, w.Bytes())
}

func TestOldContentOfTheBufferDoesNotShow(t *testing.T) {
	for bits := 0; bits <= 200; bits++ {
		buf := make([]byte, 25)
		for i := range buf {
			buf[i] = 0xff
		}
		w := NewWriter(buf)
		for range bits {
			w.WriteBool(false)
		}
		require.Equal(t, make([]byte, (bits+7)/8), w.Bytes())
	}
}

func TestRollbackClearsWhatWasWritten(t *testing.T) {
	for keep := range 140 {
		w := NewWriter(make([]byte, 40))
		for range keep {
			w.WriteBool(false)
		}
		m := w.Mark()
		w.WriteBits(^uint64(0), 64)
		w.WriteBits(^uint64(0), 64)
		w.Rollback(m)
		require.Equal(t, make([]byte, (keep+7)/8), w.Bytes(), "after %d bits", keep)
	}
}

func TestMisuseOfAWriterPanics(t *testing.T) {
	w := NewWriter(make([]byte, 100))
	require.Panics(t, func() { w.WriteBits(0, 65) })
	require.Panics(t, func() { w.WriteBits(0, ^uint(0)) })
	require.PanicsWithValue(t, badOrder, func() { w.WriteExpGolomb(0, 64) })
	require.PanicsWithValue(t, badOrder, func() { w.WriteRice(0, 64) })
	require.PanicsWithValue(t, badOrder, func() { expGolombLen(0, 64) })
	require.PanicsWithValue(t, badOrder, func() { riceLen(0, 64) })
	require.Panics(t, func() { w.WriteUnary(4, 3) })
	require.Panics(t, func() { w.WriteUnary(4, 64) })
	require.Panics(t, func() { w.WriteTruncated(4, 4) })
	require.Panics(t, func() { w.WriteTruncated(0, 0) })
	require.Panics(t, func() { w.WriteTruncated(0, 1<<63+1) })
	require.Panics(t, func() { w.WriteRun(make([]byte, 1), 9) })
	require.Panics(t, func() { w.WriteRun(make([]byte, 1), -1) })
	require.Zero(t, w.Len())

	w.WriteBool(true)
	m := w.Mark()
	w.Reset(make([]byte, 1))
	require.Panics(t, func() { w.Rollback(m) })
}

func TestWritingAndReadingAllocateNothing(t *testing.T) {
	buf := make([]byte, 1200)
	src := []byte{1, 2, 3, 4, 5, 6, 7, 8, 9}
	dst := make([]byte, 9)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		w := NewWriter(buf)
		m := w.Mark()
		w.WriteBits(5, 3)
		w.Rollback(m)
		w.WriteBool(true)
		w.WriteRun(src, 71)
		w.Align()
		w.WriteBytes(src)
		w.WriteUvarint(1 << 60)
		w.WriteExpGolomb(1<<60, 0)
		w.WriteRice(1<<60, 0)
		r := NewReader(w.Bytes())
		r.ReadBool()
		r.ReadBits(71 - 64)
		r.ReadBits(64)
		r.Align()
		r.ReadBytes(dst)
		r.ReadUvarint()
		r.ReadExpGolomb(0)
		r.ReadRice(0)
		if w.Err() != nil || r.Finish() != nil {
			t.Fatal(w.Err(), r.Finish())
		}
	}))
}

// TestWriteSpan: bits from the middle of other bits, beside writing them one by one.
func TestWriteSpan(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	src := make([]byte, 40)
	for i := range src {
		src[i] = byte(rng.Uint32())
	}
	for range 20_000 {
		from := rng.IntN(8*len(src) + 1)
		n, offset := rng.IntN(8*len(src)-from+1), rng.IntN(80)
		size := rng.IntN(60)
		span, bit := NewWriter(make([]byte, size)), NewWriter(make([]byte, size))
		for range offset {
			span.WriteBool(true)
			bit.WriteBool(true)
		}
		if bit.Remaining() >= n {
			for i := from; i < from+n; i++ {
				bit.WriteBool(src[i>>3]>>(i&7)&1 != 0)
			}
		} else {
			bit.WriteBytes(make([]byte, size+1)) // overflows, and writes nothing
		}
		span.WriteSpan(src, from, n)
		require.Equal(t, bit.Err(), span.Err())
		require.Equal(t, bit.Len(), span.Len())
		require.Equal(t, bit.Bytes(), span.Bytes(), "from %d, %d bits behind %d", from, n, offset)
	}
	w := NewWriter(make([]byte, 8))
	for _, c := range [][2]int{{-1, 1}, {0, -1}, {8 * len(src), 1}, {9 * len(src), 0}, {1, 8 * len(src)}} {
		require.Panics(t, func() { w.WriteSpan(src, c[0], c[1]) }, c)
	}
}
