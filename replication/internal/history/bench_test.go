package history

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/delta"
)

// newRows returns a history of 4096 slots with rows of 7 words that have changed in each
// of the last 64 ticks.
func newRows() (h *Rows, row []uint32, now delta.Tick) {
	h, row = New(7, 64), make([]uint32, 7)
	for now < 200 {
		now++
		for slot := range 4096 {
			row[6] = uint32(now) & 1
			h.Set(slot, now, 1, row)
		}
	}
	return h, row, now
}

func BenchmarkSet(b *testing.B) {
	h, row, now := newRows()
	b.Run("unchanged", func(b *testing.B) {
		i := 0
		for b.Loop() {
			h.Set(i&4095, now, 1, row)
			i++
		}
	})
	b.Run("changed", func(b *testing.B) {
		i := 0
		for b.Loop() {
			if i&4095 == 0 {
				now++
				row[6] ^= 1
			}
			h.Set(i&4095, now, 1, row)
			i++
		}
	})
}

func BenchmarkAt(b *testing.B) {
	h, _, now := newRows()
	for _, c := range []struct {
		name string
		age  delta.Tick
	}{{"present", 0}, {"6 versions back", 6}, {"60 versions back", 60}} {
		b.Run(c.name, func(b *testing.B) {
			i := 0
			for b.Loop() {
				if _, found := h.At(i&4095, now-c.age); found != Present {
					b.Fatal(found)
				}
				i++
			}
		})
	}
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	h, row, now := New(7, 64), make([]uint32, 7), delta.Tick(1)
	step := func() {
		for slot := range 8 {
			row[3] = uint32(now)
			h.Set(slot, now, 1, row)
			h.Set(slot, now, 1, row)
			h.At(slot, now-min(now-1, 40))
		}
		now++
	}
	for range 70 {
		step()
	}
	require.Zero(t, testing.AllocsPerRun(1000, step))
}
