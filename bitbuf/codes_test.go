package bitbuf

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// bitString reads "00 1 01" as bits, first bit first.
func bitString(s string) (bs []bool) {
	for _, c := range s {
		if c != ' ' {
			bs = append(bs, c == '1')
		}
	}
	return bs
}

func packed(bs []bool) []byte {
	return (&oracleWriter{bits: bs}).bytes()
}

func TestCodesOfKnownValues(t *testing.T) {
	uvarint := func(w *Writer, v uint64, _ uint) { w.WriteUvarint(v) }
	golomb := func(w *Writer, v uint64, k uint) { w.WriteExpGolomb(v, k) }
	rice := func(w *Writer, v uint64, k uint) { w.WriteRice(v, k) }
	unary := func(w *Writer, v uint64, limit uint) { w.WriteUnary(uint(v), limit) }
	truncated := func(w *Writer, v uint64, n uint) { w.WriteTruncated(v, uint64(n)) }
	among := func(w *Writer, v uint64, bits uint) { w.WriteTruncated(v, 1<<bits) }
	zeros := strings.Repeat("0", 32)
	for _, c := range []struct {
		write func(*Writer, uint64, uint)
		v     uint64
		k     uint
		want  string
	}{
		{uvarint, 0, 0, "0000000 0"},
		{uvarint, 1, 0, "1000000 0"},
		{uvarint, 127, 0, "1111111 0"},
		{uvarint, 128, 0, "0000000 1 1000000 0"},
		{uvarint, 300, 0, "0011010 1 0100000 0"},
		{golomb, 0, 0, "1"},
		{golomb, 1, 0, "0 1 0"},
		{golomb, 2, 0, "0 1 1"},
		{golomb, 3, 0, "00 1 00"},
		{golomb, 6, 0, "00 1 11"},
		{golomb, 0, 1, "1 0"},
		{golomb, 1, 1, "1 1"},
		{golomb, 2, 1, "0 1 00"},
		{golomb, 3, 1, "0 1 10"},
		{golomb, 5, 1, "0 1 11"},
		{golomb, 6, 1, "00 1 000"},
		{golomb, 5, 3, "1 101"},
		{golomb, math.MaxUint64, 63, "0 1" + strings.Repeat("1", 63) + "0"},
		{rice, 0, 0, "1"},
		{rice, 2, 0, "001"},
		{rice, 0, 2, "1 00"},
		{rice, 6, 2, "0 1 01"},
		{rice, 31, 0, zeros[:31] + "1"},
		{rice, 32, 0, zeros + "1 00000"},
		{rice, 33, 0, zeros + "1 10000"},
		{rice, 64, 0, zeros + "0 1 000000"},
		{rice, 64, 1, zeros + "1 000000"},
		{truncated, 0, 1, ""},
		{truncated, 1, 2, "1"},
		{truncated, 0, 3, "0"},
		{truncated, 1, 3, "10"},
		{truncated, 2, 3, "11"},
		{truncated, 2, 5, "01"},
		{truncated, 3, 5, "110"},
		{truncated, 4, 5, "111"},
		{among, 1<<63 - 1, 63, strings.Repeat("1", 63)},
		{unary, 0, 0, ""},
		{unary, 0, 3, "1"},
		{unary, 2, 3, "001"},
		{unary, 3, 3, "000"},
		{unary, 63, 63, strings.Repeat("0", 63)},
		{unary, 62, 63, strings.Repeat("0", 62) + "1"},
	} {
		w := NewWriter(make([]byte, 40))
		c.write(&w, c.v, c.k)
		require.Equal(t, packed(bitString(c.want)), w.Bytes(), "%d of order %d, want %s", c.v, c.k, c.want)
		require.Equal(t, len(bitString(c.want)), w.Len())
	}
}

// codeValues are the neighbours of every power of two and of every class border.
func codeValues() (vs []uint64) {
	for k := range 65 {
		for d := range 5 {
			vs = append(vs, 1<<k+uint64(d)-2, math.MaxUint64-1<<k+uint64(d)-2, RiceEscape<<k+uint64(d)-2)
		}
	}
	rng := rand.New(rand.NewPCG(9, 10))
	for range 200 {
		vs = append(vs, rng.Uint64()>>rng.IntN(64))
	}
	return vs
}

func TestCodesOfEveryOrderRoundTrip(t *testing.T) {
	vs := codeValues()
	buf := make([]byte, 64)
	for k := range uint(64) {
		for _, v := range vs {
			w := NewWriter(buf)
			w.WriteBits(5, k%8) // at all alignments
			at := w.Len()
			w.WriteExpGolomb(v, k)
			if int(expGolombLen(v, k)) != w.Len()-at || w.Len()-at > 129 {
				t.Fatalf("exp-golomb of %d, order %d: %d bits, expected %d", v, k, w.Len()-at, expGolombLen(v, k))
			}
			at = w.Len()
			w.WriteRice(v, k)
			if int(riceLen(v, k)) != w.Len()-at || w.Len()-at > 156 {
				t.Fatalf("rice of %d, order %d: %d bits, expected %d", v, k, w.Len()-at, riceLen(v, k))
			}
			at = w.Len()
			w.WriteUvarint(v)
			if int(uvarintLen(v)) != w.Len()-at || w.Len()-at > uvarintMaxLen {
				t.Fatalf("uvarint of %d: %d bits, expected %d", v, w.Len()-at, uvarintLen(v))
			}
			r := NewReader(w.Bytes())
			r.ReadBits(k % 8)
			golomb, rice, uvarint := r.ReadExpGolomb(k), r.ReadRice(k), r.ReadUvarint()
			if golomb != v || rice != v || uvarint != v || r.Finish() != nil {
				t.Fatalf("%d, order %d, came back as %d, %d, %d (%v)", v, k, golomb, rice, uvarint, r.Finish())
			}
		}
	}
}

func TestUvarintIsThatOfEncodingBinary(t *testing.T) {
	for _, v := range codeValues() {
		w := NewWriter(make([]byte, 10))
		w.WriteUvarint(v)
		require.Equal(t, binary.AppendUvarint(nil, v), w.Bytes())
	}
}

func TestUvarintHasOneEncoding(t *testing.T) {
	for _, c := range []struct {
		name string
		buf  []byte
		want error
	}{
		{"zero", []byte{0}, nil},
		{"zero in two groups", []byte{0x80, 0}, ErrCode},
		{"one in three groups", []byte{0x81, 0x80, 0}, ErrCode},
		{"eight groups", []byte{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1}, nil},
		{"eight groups, the last superfluous", []byte{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0}, ErrCode},
		{"nine groups", []byte{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1}, nil},
		{"nine groups, the last superfluous", []byte{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0}, ErrCode},
		{"the largest", []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, nil},
		{"ten groups, the last superfluous", []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0}, ErrCode},
		{"65 bits", []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2}, ErrCode},
		{"eleven groups", []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x81, 0}, ErrCode},
		{"cut off", []byte{0x80}, ErrOverrun},
		{"cut off after nine groups", []byte{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80}, ErrOverrun},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := NewReader(c.buf)
			v := r.ReadUvarint()
			require.Equal(t, c.want, r.Err())
			if c.want != nil {
				require.Zero(t, v)
				return
			}
			require.Equal(t, binary.AppendUvarint(nil, v), c.buf)
		})
	}
}

func TestGolombCodesAbove64BitsAreRefused(t *testing.T) {
	for k := range uint(64) {
		for _, c := range []struct {
			rest, want uint64
			err        error
		}{
			{0, -(1 << k), nil},
			{1<<k - 1, math.MaxUint64, nil},
			{1 << k, 0, ErrCode},
			{math.MaxUint64, 0, ErrCode},
		} {
			// As long a prefix as there can be.
			bs := append(make([]bool, 64-k), true)
			r := NewReader(packed(append(bs, oracleBits(c.rest, 64)...)))
			require.Equal(t, c.want, r.ReadExpGolomb(k), "order %d, rest %d", k, c.rest)
			require.Equal(t, c.err, r.Err(), "order %d, rest %d", k, c.rest)
		}
		r := NewReader(make([]byte, 40))
		require.Zero(t, r.ReadExpGolomb(k))
		require.Equal(t, ErrCode, r.Err(), "zeros, order %d", k)
		require.Equal(t, int(65-k), r.Pos(), "the prefix must not be followed further")

		r = NewReader(make([]byte, 40))
		require.Zero(t, r.ReadRice(k))
		require.Equal(t, ErrCode, r.Err(), "zeros, order %d", k)
	}
	for k := uint(60); k < 64; k++ { // RiceEscape<<k is above 64 bits, some quotients too
		bs := append(append(make([]bool, 31), true), make([]bool, 64)...)
		r := NewReader(packed(bs))
		require.Zero(t, r.ReadRice(k))
		require.Equal(t, ErrCode, r.Err(), "order %d", k)
	}
}

func TestEscapedRiceCodesAbove64BitsAreRefused(t *testing.T) {
	escaped := func(k uint, rest uint64) Reader {
		w := NewWriter(make([]byte, 40))
		w.WriteBits(0, RiceEscape)
		w.WriteExpGolomb(rest, k+5)
		return NewReader(w.Bytes())
	}
	for k := range uint(59) {
		largest := math.MaxUint64 - uint64(RiceEscape)<<k
		r := escaped(k, largest)
		require.Equal(t, uint64(math.MaxUint64), r.ReadRice(k))
		require.NoError(t, r.Finish())

		r = escaped(k, largest+1)
		require.Zero(t, r.ReadRice(k))
		require.Equal(t, ErrCode, r.Err(), "order %d", k)
	}
}

func TestACodeThatIsCutOffReadsAsZero(t *testing.T) {
	for _, v := range []uint64{1, 200, 1 << 33, 1<<56 - 1, 1 << 56, 1<<63 | 1<<62, math.MaxUint64} {
		for skip := range uint(8) {
			for _, code := range []struct {
				name  string
				write func(*Writer)
				read  func(*Reader) uint64
			}{
				{"uvarint", func(w *Writer) { w.WriteUvarint(v) }, (*Reader).ReadUvarint},
				{"exp-golomb 0", func(w *Writer) { w.WriteExpGolomb(v, 0) }, func(r *Reader) uint64 { return r.ReadExpGolomb(0) }},
				{"exp-golomb 40", func(w *Writer) { w.WriteExpGolomb(v, 40) }, func(r *Reader) uint64 { return r.ReadExpGolomb(40) }},
				{"rice 2", func(w *Writer) { w.WriteRice(v, 2) }, func(r *Reader) uint64 { return r.ReadRice(2) }},
				{"rice 61", func(w *Writer) { w.WriteRice(v, 61) }, func(r *Reader) uint64 { return r.ReadRice(61) }},
			} {
				w := NewWriter(make([]byte, 40))
				w.WriteBits(0, skip)
				code.write(&w)
				for n := int(skip+7) / 8; n*8 < w.Len(); n++ {
					r := NewReader(w.Bytes()[:n])
					r.ReadBits(skip)
					require.Zero(t, code.read(&r), "%s of %d after %d bits, cut to %d bytes", code.name, v, skip, n)
					require.Equal(t, ErrOverrun, r.Err())
				}
			}
		}
	}
}
