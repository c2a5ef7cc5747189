package wire

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/bitbuf"
)

// readSlots reads lists that write wrote, after which there are so many zero bits.
func readSlots(ref []SlotBlock, limit uint64, zeros int, write func(w *bitbuf.Writer)) (s SlotReader, err error) {
	w := bitbuf.NewWriter(make([]byte, 2048))
	write(&w)
	n := w.Len() + zeros
	for range zeros {
		w.WriteBool(false)
	}
	r := bitbuf.NewReader(w.Bytes())
	complete, refers, _ := s.HasReference(&r)
	if !refers {
		ref = nil
	}
	s.Read(&r, ref, complete, limit)
	if err = r.Err(); err == nil && r.Pos() > n {
		err = bitbuf.ErrOverflow
	}
	return s, err
}

// TestSlotsAreBelowTheLimit: neither listed slots nor the ends of a range of the reference may be at or beyond it, also
// if their numbers are so large that they wrap around.
func TestSlotsAreBelowTheLimit(t *testing.T) {
	const limit = 200
	listed := func(gaps ...uint64) func(w *bitbuf.Writer) {
		return func(w *bitbuf.Writer) {
			w.WriteBits(0, 3) // no reference
			w.WriteExpGolomb(uint64(len(gaps)), 0)
			w.WriteBits(7, orderBits)
			for _, gap := range gaps {
				w.WriteRice(gap, 7)
				w.WriteBits(1, 1) // an update
			}
		}
	}
	for _, c := range []struct {
		name string
		gaps []uint64
		ok   bool
	}{
		{"the last slot", []uint64{limit - 1}, true},
		{"the limit", []uint64{limit}, false},
		{"two, the second one the last slot", []uint64{100, limit - 102}, true},
		{"two, the second one the limit", []uint64{100, limit - 101}, false},
		{"far beyond", []uint64{1 << 17}, false},
		{"so far that it wraps around to the first one", []uint64{100, 1<<64 - 101}, false},
	} {
		s, err := readSlots(nil, limit, 0, listed(c.gaps...))
		require.Equal(t, c.ok, err == nil, "%s: %v", c.name, err)
		if c.ok {
			require.EqualValues(t, limit-1, s.listed[len(s.listed)-1].Slot)
		}
	}
	ref := []SlotBlock{{Block: 0, Mask: 1}, {Block: 2, Mask: 1}}
	for _, c := range []struct {
		name string
		from uint64 // block
		ok   bool
	}{
		{"the last block", limit >> 6, true},
		{"beyond the limit", limit>>6 + 2, false},
		{"so far that it wraps around to the first block", 1 << 58, false},
	} {
		_, err := readSlots(ref, limit, 16, func(w *bitbuf.Writer) {
			w.WriteBits(2, 2) // a reference, not completely
			w.WriteBool(true) // it has a beginning
			w.WriteBool(false)
			w.WriteExpGolomb(c.from, fromOrder)
			w.WriteBool(false)
			w.WriteExpGolomb(0, 0)
		})
		require.Equal(t, c.ok, err == nil, "%s: %v", c.name, err)
	}
	for _, n := range []uint64{1, 1<<64 - 2, 1<<64 - 1} { // blocks from the beginning of a range to its end
		_, err := readSlots(ref, limit, 16, func(w *bitbuf.Writer) {
			w.WriteBits(2, 2)
			w.WriteBits(3, 2) // it has a beginning and an end
			w.WriteExpGolomb(2, fromOrder)
			w.WriteBool(false)
			w.WriteExpGolomb(n, toOrder)
			w.WriteBool(false)
			if n == 1 { // there is a slot in it
				w.WriteBool(false)
				w.WriteExpGolomb(0, countOrder(1))
			}
			w.WriteExpGolomb(0, 0)
		})
		require.Equal(t, n == 1, err == nil, "%d blocks: %v", n, err)
	}
}

// TestEntriesTakeBits: a packet has no more listed entries than it has bits for, and only some more updates of the slots
// of its reference.
func TestEntriesTakeBits(t *testing.T) {
	for _, count := range []uint64{1 << 20, 1 << 62, 1 << 63, 1<<64 - 2} {
		_, err := readSlots(nil, 1<<20, 64, func(w *bitbuf.Writer) {
			w.WriteBits(0, 3)
			w.WriteExpGolomb(count, 0)
		})
		require.ErrorIs(t, err, ErrMalformed, "%d listed", count)
	}
	order := countOrder(freeKept)
	for _, more := range []int{0, 1} {
		rest := 64 - 1 - 1 - (int(order) + 1) // bits after the lists of the reference
		n := freeKept + rest + more
		require.Equal(t, order, countOrder(n))
		var ref []SlotBlock
		for b := range uint32((n + 63) / 64) {
			ref = append(ref, SlotBlock{b, 1<<min(n-int(b)*64, 64) - 1})
		}
		_, err := readSlots(ref, 1<<20, 0, func(w *bitbuf.Writer) {
			w.WriteBool(true) // a reference, completely
			w.WriteBool(false)
			w.WriteExpGolomb(0, order) // all have an update
			for range rest {
				w.WriteBool(true) // no listed ones; and rows
			}
			require.Equal(t, 64, w.Len())
		})
		require.Equal(t, more == 0, err == nil, "%v", err)
	}
}

// TestTheCountOfSlotsWithoutUpdateIsRight: a packet can't count more such slots than the reference has.
func TestTheCountOfSlotsWithoutUpdateIsRight(t *testing.T) {
	ref := []SlotBlock{{Block: 0, Mask: 7}}
	for _, count := range []uint64{0, 3, 4, 1 << 32, 1<<32 + 3, 1 << 63} {
		_, err := readSlots(ref, 64, 16, func(w *bitbuf.Writer) {
			w.WriteBool(true)
			w.WriteBool(false)
			w.WriteExpGolomb(count, countOrder(3))
			for range min(count, 8) {
				w.WriteRice(0, gapOrder(3-int(min(count, 3)), int(min(count, 3))))
			}
			w.WriteExpGolomb(0, 0)
		})
		require.Equal(t, count <= 3, err == nil, "%d: %v", count, err)
	}
	for _, gap := range []uint64{1, 2} { // from the first slot to the second one in the list
		_, err := readSlots(ref, 64, 16, func(w *bitbuf.Writer) {
			w.WriteBool(true)
			w.WriteBool(false)
			w.WriteExpGolomb(2, countOrder(3))
			w.WriteRice(0, gapOrder(1, 2))
			w.WriteRice(gap, gapOrder(1, 2))
			w.WriteExpGolomb(0, 0)
		})
		require.Equal(t, gap == 1, err == nil, "gap %d: %v", gap, err)
	}
}
