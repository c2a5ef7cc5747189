package delta

import "math/bits"

// testRows is a simple [Block]. It keeps superseded versions of rows for a window of ticks.
type testRows struct {
	window  Tick
	words   int
	present uint64
	records []uint32 // ticks and rows of the present ones
	latest  Tick
	past    [blockSlots][]testVersion // all versions, the present one last
}

type testVersion struct {
	began Tick
	row   []uint32 // nil without the component
}

// newTestRows returns rows of slots that were without the component from tick born on.
func newTestRows(words, window int, born Tick) *testRows {
	b := &testRows{window: Tick(window), words: words, records: make([]uint32, blockSlots*(1+words))}
	for i := range b.past {
		b.past[i] = []testVersion{{born, nil}}
	}
	return b
}

// set records that a slot has a row from tick now on, or none if row is nil.
func (b *testRows) set(slot int, now Tick, row []uint32) {
	i := slot % blockSlots
	last := &b.past[i][len(b.past[i])-1]
	if (row == nil) == (last.row == nil) && (row == nil || equal(row, last.row)) {
		return
	}
	kept := append([]uint32(nil), row...)
	if row != nil && kept == nil {
		kept = []uint32{}
	}
	if last.began == now {
		last.row = kept
	} else {
		b.past[i] = append(b.past[i], testVersion{now, kept})
	}
	for len(b.past[i]) > 1 && now-b.past[i][1].began > b.window {
		b.past[i] = b.past[i][1:]
	}
	if b.present &^= 1 << i; row != nil {
		b.present |= 1 << i
		b.records[i*(1+b.words)], b.latest = uint32(now), now
		copy(b.row(slot), row)
	}
}

func (b *testRows) has(slot int) bool { return b.present>>(slot%blockSlots)&1 != 0 }
func (b *testRows) row(slot int) []uint32 {
	return b.records[slot%blockSlots*(1+b.words):][1 : 1+b.words]
}

func (b *testRows) began(slot int) Tick {
	past := b.past[slot%blockSlots]
	return past[len(past)-1].began
}

// at returns the row of a slot at tick t, or nil if there was none, and false if it is forgotten.
func (b *testRows) at(slot int, t Tick) (row []uint32, known bool) {
	past := b.past[slot%blockSlots]
	for k := len(past) - 1; k >= 0; k-- {
		if !past[k].began.After(t) {
			return past[k].row, true
		}
	}
	return nil, false
}

func (b *testRows) Rows() (present uint64, records []uint32, latest Tick) {
	return b.present, b.records, b.latest
}

func (b *testRows) At(slots uint64, t Tick, rows *[64][]uint32) (unknown uint64) {
	for ; slots != 0; slots &= slots - 1 {
		i := bits.TrailingZeros64(slots)
		row, known := b.at(i, t)
		if rows[i] = row; !known {
			unknown |= 1 << i
		}
	}
	return unknown
}
