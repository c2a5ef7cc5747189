package bitbuf

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// A program is a list of operations that both an implementation and the oracle
// can carry out. Any bytes parse as a program, so that a fuzzer can write one.
type op struct {
	kind opKind
	n    uint   // a width, an order, a limit or a number of bits
	v    uint64 // a value
	data []byte // for opBytes and opRun
}

type opKind byte

const (
	opBits opKind = iota
	opBool
	opAlign
	opBytes
	opRun
	opUvarint
	opExpGolomb
	opRice
	opUnary
	opTruncated
	opMark
	opRollback
	opPeek // at what is written so far, through Bytes
	opKinds
)

// maxProgramNumbers is the largest number of numbers in truncated binary.
const maxProgramNumbers = 70

func (o op) String() string {
	return fmt.Sprintf("{%d n=%d v=%#x data=%x}", o.kind, o.n, o.v, o.data)
}

// parseProgram reads a kind, an argument and, for most kinds, a value of as many
// bytes as the argument's high bits select, until script is used up.
func parseProgram(script []byte) (ops []op) {
	take := func(n int) []byte {
		n = min(n, len(script))
		b := script[:n]
		script = script[n:]
		return b
	}
	for len(script) > 0 {
		o := op{kind: opKind(take(1)[0]) % opKinds}
		var arg, value [8]byte
		copy(arg[:], take(1))
		n := uint(arg[0])
		switch o.kind {
		case opBits:
			o.n = n % 65
		case opExpGolomb, opRice:
			o.n = n % 64
			if n >= 128 {
				o.n %= 6 // the orders with long prefixes
			}
		case opUnary:
			o.n = n % 64
		case opTruncated:
			o.n = 1 + n%maxProgramNumbers
		case opBytes:
			o.data = take(int(n))
		case opRun:
			o.data = take(int(n)/8 + 1)
			o.n = min(n, uint(len(o.data))*8)
		case opRollback:
			o.n = n
		}
		switch o.kind {
		case opBits, opUvarint, opExpGolomb, opRice, opUnary, opTruncated, opBool:
			size := copy(value[:], take(1+int(n)%9)) // short ones make small values
			o.v = binary.LittleEndian.Uint64(value[:])
			if size == 8 && n%2 == 1 {
				o.v = ^o.v
			}
			if o.kind == opUnary {
				o.v %= uint64(o.n) + 1
			}
			if o.kind == opTruncated {
				o.v %= uint64(o.n)
			}
		}
		ops = append(ops, o)
	}
	return ops
}

// randomScript has enough of everything for most programs to be interesting.
func randomScript(rng *rand.Rand, size int) []byte {
	script := make([]byte, size)
	for i := range script {
		script[i] = byte(rng.Uint32())
		if rng.IntN(4) == 0 {
			script[i] &= 0x0f
		}
	}
	return script
}

func (o op) oracleBits(pos int) []bool {
	switch o.kind {
	case opBits:
		return oracleBits(o.v, o.n)
	case opBool:
		return oracleBits(o.v, 1)
	case opAlign:
		return make([]bool, -pos&7)
	case opBytes:
		return oracleBytes(o.data)
	case opRun:
		return oracleBytes(o.data)[:o.n]
	case opUvarint:
		return oracleUvarint(o.v)
	case opExpGolomb:
		return oracleExpGolomb(o.v, o.n)
	case opRice:
		return oracleRice(o.v, o.n)
	case opUnary:
		return oracleUnary(o.v, o.n)
	case opTruncated:
		return truncatedCodes[o.n][o.v]
	}
	return nil
}

func (o op) write(w *Writer) {
	switch o.kind {
	case opBits:
		w.WriteBits(o.v, o.n)
	case opBool:
		w.WriteBool(o.v&1 != 0)
	case opAlign:
		w.Align()
	case opBytes:
		w.WriteBytes(o.data)
	case opRun:
		w.WriteRun(o.data, int(o.n))
	case opUvarint:
		w.WriteUvarint(o.v)
	case opExpGolomb:
		w.WriteExpGolomb(o.v, o.n)
	case opRice:
		w.WriteRice(o.v, o.n)
	case opUnary:
		w.WriteUnary(uint(o.v), o.n)
	case opTruncated:
		w.WriteTruncated(o.v, uint64(o.n))
	}
}

// read returns what r and its oracle make of the operation.
func (o op) read(r *Reader, or *oracleReader) (got, want any) {
	switch o.kind {
	case opBits:
		return r.ReadBits(o.n), or.read(o.n)
	case opBool:
		return r.ReadBool(), or.bit()
	case opAlign:
		r.Align()
		or.align()
	case opBytes:
		dst := bytes.Repeat([]byte{0xcc}, len(o.data))
		r.ReadBytes(dst)
		return dst, or.bytes(len(o.data))
	case opUvarint:
		return r.ReadUvarint(), or.uvarint()
	case opExpGolomb:
		return r.ReadExpGolomb(o.n), or.expGolomb(o.n)
	case opRice:
		return r.ReadRice(o.n), or.rice(o.n)
	case opUnary:
		return uint64(r.ReadUnary(o.n)), or.unary(o.n)
	case opTruncated:
		return r.ReadTruncated(uint64(o.n)), or.truncated(o.n)
	case opRun: // a run is read as bits
		var g, w []uint64
		for n := o.n; n > 0; n -= min(n, 61) {
			g = append(g, r.ReadBits(min(n, 61)))
			w = append(w, or.read(min(n, 61)))
		}
		return g, w
	case opMark: // stands for a decoder's complaint, when there is no writer
		if o.n == 0 {
			r.Fail(errTest)
			or.fail(errTest)
		}
	}
	return nil, nil
}

const canary = 0xa5

// checkWrite runs ops on a Writer with room bytes, in lockstep with the oracle,
// and returns the operations that were written and not undone, and their bytes.
func checkWrite(t *testing.T, ops []op, room int) (written []op, packed []byte) {
	t.Helper()
	arena := bytes.Repeat([]byte{canary}, room+32)
	w := NewWriter(arena[16 : 16+room])
	o := newOracleWriter(room * 8)

	type mark struct {
		m        Mark
		bits     int
		overflow bool
		written  int
	}
	var marks []mark
	for i, op := range ops {
		switch op.kind {
		case opMark:
			marks = append(marks, mark{w.Mark(), len(o.bits), o.overflow, len(written)})
		case opRollback:
			if len(marks) == 0 {
				continue
			}
			j := int(op.n) % len(marks)
			m := marks[j]
			marks = marks[:j+1] // an earlier mark stays good
			w.Rollback(m.m)
			o.bits, o.overflow = o.bits[:m.bits], m.overflow
			written = written[:m.written]
		case opPeek:
			require.Equal(t, o.bytes(), w.Bytes(), "op %d", i)
		default:
			op.write(&w)
			o.write(op.oracleBits(len(o.bits)))
			if !o.overflow {
				written = append(written, op)
			}
		}
		require.Equal(t, len(o.bits), w.Len(), "length after op %d %v, room %d", i, op, room)
		require.Equal(t, o.overflow, w.Err() != nil, "error after op %d %v, room %d", i, op, room)
		left := o.room - len(o.bits)
		if o.overflow {
			left = 0
		}
		require.Equal(t, left, w.Remaining(), "remaining after op %d %v, room %d", i, op, room)
	}
	require.Equal(t, o.bytes(), w.Bytes(), "room %d", room)
	if o.overflow {
		require.ErrorIs(t, w.Err(), ErrOverflow)
	}
	for _, outside := range [][]byte{arena[:16], arena[16+room:]} {
		require.Equal(t, bytes.Repeat([]byte{canary}, 16), outside, "wrote outside the buffer")
	}
	return written, bytes.Clone(w.Bytes())
}

// checkRead runs ops on a Reader of buf in lockstep with the oracle.
func checkRead(t *testing.T, ops []op, buf []byte) {
	t.Helper()
	r, or := NewReader(buf), newOracleReader(buf)
	for i, op := range ops {
		before := or.pos
		got, want := op.read(&r, or)
		require.Equal(t, want, got, "value of op %d %v", i, op)
		require.Equal(t, or.err, r.Err(), "error after op %d %v", i, op)
		require.Equal(t, or.pos, r.Pos(), "position after op %d %v", i, op)
		left := len(or.bits) - or.pos
		if or.err != nil {
			left = 0
		}
		require.Equal(t, left, r.Remaining(), "remaining after op %d %v", i, op)
		if v, ok := got.(uint64); ok && or.err == nil {
			// What was accepted is exactly what a Writer makes of its value.
			op.v = v
			require.True(t, slices.Equal(or.bits[before:or.pos], op.oracleBits(0)), "op %d %v is not canonical", i, op)
		}
	}
	want := or.err
	if want == nil {
		rest := or.bits[or.pos:]
		for _, b := range rest {
			if b || len(rest) >= 8 {
				want = ErrTrailing
			}
		}
	}
	require.Equal(t, want, r.Finish())
}

// checkRoundTrip writes ops and reads back what was written.
func checkRoundTrip(t *testing.T, ops []op, room int) {
	t.Helper()
	written, packed := checkWrite(t, ops, room)
	r, or := NewReader(packed), newOracleReader(packed)
	for i, op := range written {
		got, _ := op.read(&r, or)
		var want any
		switch op.kind {
		case opBits:
			want = op.v & (1<<op.n - 1)
		case opBool:
			want = op.v&1 != 0
		case opBytes:
			want = op.data
		case opUvarint, opExpGolomb, opRice, opUnary, opTruncated:
			want = op.v
		default:
			continue
		}
		if op.kind == opBytes {
			require.True(t, bytes.Equal(want.([]byte), got.([]byte)), "op %d %v", i, op)
			continue
		}
		require.Equal(t, want, got, "op %d %v", i, op)
	}
	require.NoError(t, r.Finish())
	checkRead(t, written, packed)
}
