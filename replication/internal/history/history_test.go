package history

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/delta"
)

// A fullLog is the naive twin of a History: it keeps every version for ever, by ticks
// that do not wrap.
type fullLog map[int]*slotLog

type slotLog struct {
	versions  []loggedVersion // the first one is the absence at the beginning
	refreshed uint64          // when the newest version began, if that was before
	known     bool            // there was a Set
}

// A blockLog is what a fullLog knows of a block of slots.
type blockLog struct {
	changed   uint64 // when something changed last
	forgotten uint64 // what was before is
}

type loggedVersion struct {
	tick uint64
	row  []uint32
	has  bool
}

func (l fullLog) begin(slot int, now uint64) {
	l[slot] = &slotLog{versions: []loggedVersion{{tick: now}}}
}

func (s *slotLog) born() uint64          { return s.versions[0].tick }
func (s *slotLog) newest() loggedVersion { return s.versions[len(s.versions)-1] }

// at returns the version at tick t, which is not before the incarnation began.
func (s *slotLog) at(t uint64) loggedVersion {
	for _, v := range slices.Backward(s.versions) {
		if v.tick <= t {
			return v
		}
	}
	panic("before the incarnation")
}

// put adds a version and reports whether it is a change.
func (s *slotLog) put(now uint64, row []uint32, has bool) bool {
	if n := s.newest(); n.has == has && slices.Equal(n.row, row) {
		return false
	}
	s.versions = append(s.versions, loggedVersion{now, row, has})
	return true
}

// A historyTest runs a History and its twin side by side.
type historyTest struct {
	t      testing.TB
	h      *Rows
	log    fullLog
	blocks map[int]*blockLog
	words  int
	window uint64
	now    uint64
	checks int
}

func newHistoryTest(t testing.TB, words, window int, now uint64) *historyTest {
	return &historyTest{t, New(words, window), fullLog{}, map[int]*blockLog{}, words, uint64(window), now, 0}
}

// block returns the log of a slot's block.
func (x *historyTest) block(slot int) *blockLog {
	b := x.blocks[slot/blockSlots]
	if b == nil {
		b = &blockLog{}
		x.blocks[slot/blockSlots] = b
	}
	return b
}

// put adds a version to the log and reports whether it is a change.
func (x *historyTest) put(slot int, row []uint32, has bool) bool {
	if !x.log[slot].put(x.now, row, has) {
		return false
	}
	x.block(slot).changed = x.now
	return true
}

// refresh lets both forget.
func (x *historyTest) refresh(slot int, limit uint64) {
	x.h.Refresh(slot, delta.Tick(limit))
	b, l := x.block(slot), x.log[slot]
	b.forgotten = max(b.forgotten, limit)
	if n := l.newest(); l.known && n.tick < limit {
		l.refreshed = max(l.refreshed, limit)
	}
}

// checkHistory lets a script use a history of the given size. The ticks begin shortly
// before they wrap.
func checkHistory(t testing.TB, words, window int, s *script) {
	x := newHistoryTest(t, words, window, 1<<32-40)
	for len(s.rest) > 0 {
		slot := []int{0, 1, 5, blockSlots - 1, blockSlots, 3*blockSlots + 7}[s.below(6)]
		l := x.log[slot]
		if l == nil {
			x.h.Begin(slot)
			x.log.begin(slot, x.now)
			continue
		}
		switch op := s.below(16); {
		case op < 4:
			x.now++
		case op == 4:
			x.now += uint64(s.byte())
		case op == 5:
			x.h.Begin(slot)
			x.log.begin(slot, x.now)
		case op == 6:
			x.require(x.put(slot, nil, false) == x.h.Remove(slot, delta.Tick(x.now)), "Remove of %d", slot)
		case op == 7:
			x.refresh(slot, x.now-min(uint64(s.byte()), x.now-l.born()))
		default:
			row := make([]uint32, words)
			for i := range row {
				row[i] = uint32(s.below(3))
			}
			changed := x.h.Set(slot, delta.Tick(x.now), delta.Tick(l.born()), row)
			x.require(x.put(slot, slices.Clone(row), true) == changed, "Set of %d to %v", slot, row)
			l.known = true
			clear(row) // the history has its own copy
		}
		x.check(slot)
	}
}

func (x *historyTest) require(ok bool, format string, args ...any) {
	x.t.Helper()
	if !ok {
		x.t.Fatalf("words %d, window %d, tick %d: %s", x.words, x.window, x.now, fmt.Sprintf(format, args...))
	}
}

// check compares all answers of the history about a slot with the log.
func (x *historyTest) check(slot int) {
	x.t.Helper()
	l := x.log[slot]
	n := l.newest()
	x.require(x.h.Has(slot) == n.has, "Has(%d)", slot)
	if n.has {
		x.require(slices.Equal(x.h.Row(slot), n.row), "Row(%d) is %v, want %v", slot, x.h.Row(slot), n.row)
		x.require(x.h.Began(slot) == delta.Tick(max(n.tick, l.refreshed)), "Began(%d)", slot)
	}
	last := l.born() // when the version before the newest began
	if n.tick > l.born() {
		last = l.at(n.tick - 1).tick
		for _, t := range []uint64{last, n.tick - 1} {
			if x.now-t < 1<<30 {
				x.checkAt(slot, t, last)
			}
		}
	}
	for t := max(l.born(), x.now-2*x.window-10); t <= x.now; t++ {
		x.checkAt(slot, t, last)
	}
	if x.checks++; x.checks%16 == 0 {
		x.checkLog(slot)
	}
}

// checkAt compares the state at a tick with the log. The version before the newest began
// at tick last.
func (x *historyTest) checkAt(slot int, t, last uint64) {
	x.t.Helper()
	l, b := x.log[slot], x.block(slot)
	v := l.at(t)
	row, found := x.h.At(slot, delta.Tick(t))
	switch found {
	case Forgotten:
		// The guarantee: never from a window before the latest change of the block on, and not
		// the last two versions, unless Refresh dropped them.
		old := t+x.window < b.changed && t < last
		x.require(l.known && (old || t < b.forgotten), "At(%d, %d) is forgotten, the latest change was at %d", slot, t, b.changed)
	case Absent:
		x.require(!v.has, "At(%d, %d) is absent, want %v", slot, t, v.row)
	case Present:
		x.require(v.has && slices.Equal(row, v.row), "At(%d, %d) is %v, want %v, %v", slot, t, row, v.row, v.has)
	}
}

// checkLog checks that the log of a slot's block is in order and within its bounds.
func (x *historyTest) checkLog(slot int) {
	x.t.Helper()
	b := x.h.block(slot)
	if b == nil || b.past.records == nil {
		return
	}
	l, stride := &b.past, x.words+recordRow
	most := max(1, x.window)
	x.require(uint64(l.n) < most && len(l.entries) <= max(4, 1<<bits.Len64(most-1)), "%d entries with room for %d", l.n, len(l.entries))
	x.require(len(l.records) <= max(2, int(most)+1)*blockSlots*stride, "a log of %d words", len(l.records))
	inUse := make([]bool, len(l.records))
	check := func(e *logEntry, records int) {
		x.require(e.ended != 0 && e.absent&^e.ended == 0, "an entry that is %+v", *e)
		for w := range records * stride {
			x.require(!inUse[int(e.start)+w], "word %d twice", int(e.start)+w)
			inUse[int(e.start)+w] = true
		}
	}
	if l.newest.ended != 0 {
		check(&l.newest, blockSlots)
	}
	for k := range l.n {
		next := l.newest.at
		if k < l.n-1 {
			next = l.entry(k + 1).at
		}
		e := l.entry(k)
		check(e, bits.OnesCount64(e.ended))
		x.require(next.After(e.at), "an entry of tick %d, the one before of %d", next, e.at)
	}
}

func TestHistoryMatchesTheFullLog(t *testing.T) {
	rng := randomOf(t)
	for _, window := range []int{0, 1, 2, 3, 4, 5, 8, 13, 32, 64} {
		for _, words := range []int{0, 1, 3} {
			checkHistory(t, words, window, &script{randomBytes(rng, roundsOf(3000, 1500))})
		}
	}
}

// A row that changes every tick is the most that a ring has to hold.
func TestHistoryOfARowThatChangesEveryTick(t *testing.T) {
	for _, window := range []int{1, 3, 4, 7, 64, 100} {
		x := newHistoryTest(t, 1, window, 1<<32-150)
		x.h.Begin(0)
		x.log.begin(0, x.now)
		x.log[0].known = true
		for i := range uint32(400) {
			x.require(x.h.Set(0, delta.Tick(x.now), delta.Tick(x.log[0].born()), []uint32{i}), "Set is a change")
			x.put(0, []uint32{i}, true)
			x.check(0)
			x.now++
		}
	}
}

// With Refresh, as a server calls it, a row and what it was a window ago are known however
// long it has rested and however often the ticks have wrapped.
func TestHistoryOfMonthsOfRest(t *testing.T) {
	const ancient, window = 1 << 30, 16
	rng := randomOf(t)
	x := newHistoryTest(t, 1, window, 7)
	x.h.Begin(0)
	x.log.begin(0, x.now)
	l := x.log[0]
	for x.now < 1<<36 {
		switch rng.IntN(3) {
		case 0:
			row := []uint32{rng.Uint32()}
			x.h.Set(0, delta.Tick(x.now), delta.Tick(max(l.born(), x.now-min(x.now, ancient))), row)
			x.put(0, row, true)
			l.known = true
		case 1:
			x.now += rng.Uint64N(ancient / 4)
		default:
			x.now += 1 + rng.Uint64N(window)
		}
		x.refresh(0, x.now-min(x.now, ancient))
		if x.now > window && x.now-window > l.born() {
			x.check(0)
		}
	}
	require.Greater(t, len(l.versions), 10)
}

func TestAVersionThatLastedNoTickLeavesNoTrace(t *testing.T) {
	h := New(1, 8)
	h.Begin(3)
	require.True(t, h.Set(3, 10, 10, []uint32{1}))
	require.True(t, h.Set(3, 10, 10, []uint32{2}))
	require.True(t, h.Remove(3, 10))
	require.False(t, h.Remove(3, 11))
	_, found := h.At(3, 10)
	require.Equal(t, Absent, found)
	require.Zero(t, h.blocks[0].past)
}

func TestNothingIsKnownOfASlotThatWasNeverSet(t *testing.T) {
	h := New(2, 8)
	h.Begin(5000)
	h.Refresh(5000, 3)
	require.False(t, h.Remove(5000, 1))
	require.False(t, h.Has(5000))
	_, found := h.At(5000, 1)
	require.Equal(t, Absent, found)
	require.Empty(t, h.blocks)
}

// Memory is bounded even where the ticks make no sense.
func TestHistoryOfTicksThatGoBackIsBounded(t *testing.T) {
	h := New(1, 20)
	for i := range uint32(1000) {
		h.Set(0, delta.Tick(1-i%2), 0, []uint32{i})
	}
	require.LessOrEqual(t, len(h.blocks[0].past.records), 21*blockSlots*(recordRow+1))
	require.LessOrEqual(t, len(h.blocks[0].past.entries), 32)
}

func TestHistoryRefusesNegativeSizes(t *testing.T) {
	const hint = ": use at least 0 words and 0 to 2^30 ticks"
	require.PanicsWithValue(t, "history: a history of -1 words and 8 ticks"+hint, func() { New(-1, 8) })
	require.PanicsWithValue(t, "history: a history of 1 words and -8 ticks"+hint, func() { New(1, -8) })
	require.PanicsWithValue(t, "history: a history of 1 words and 1073741825 ticks"+hint, func() { New(1, 1<<30+1) })
}

// Many slots at once are as one after the other, whether they follow one another or not.
func TestSetRowsIsSetForEverySlot(t *testing.T) {
	rng := randomOf(t)
	for _, words := range []int{0, 1, 2, 3, 5} {
		for _, window := range []int{0, 3, 20} {
			x := newHistoryTest(t, words, window, 1<<32-40)
			for range roundsOf(120, 60) {
				x.now += uint64(rng.IntN(3))
				var slots []uint32
				if first := rng.Uint32N(3 * blockSlots); rng.IntN(3) > 0 { // neighbours, across pages too
					for i := range 1 + rng.Uint32N(150) {
						slots = append(slots, first+i)
					}
				} else {
					for _, i := range rng.Perm(3 * blockSlots)[:1+rng.IntN(150)] {
						slots = append(slots, uint32(i))
					}
				}
				rows := make([]uint32, len(slots)*words)
				change := rng.IntN(3)
				changed, want := make([]uint64, (len(slots)+63)/64), make([]uint64, (len(slots)+63)/64)
				changed[0], want[0] = 1<<63, 1<<63 // stays
				for i, slot := range slots {
					l := x.log[int(slot)]
					if l == nil || rng.IntN(100) == 0 {
						x.h.Begin(int(slot))
						x.log.begin(int(slot), x.now)
						l = x.log[int(slot)]
					} else if rng.IntN(20) == 0 {
						x.require(x.put(int(slot), nil, false) == x.h.Remove(int(slot), delta.Tick(x.now)), "Remove of %d", slot)
					}
					row := rows[i*words:][:words]
					if n := l.newest(); n.has && rng.IntN(2) >= change {
						copy(row, n.row)
					} else {
						for k := range row {
							row[k] = rng.Uint32N(2) * rng.Uint32()
						}
					}
					l.known = true
					if x.put(int(slot), slices.Clone(row), true) {
						want[i/64] |= 1 << (i % 64)
					}
				}
				x.h.SetRows(slots, delta.Tick(x.now), func(slot int) delta.Tick { return delta.Tick(x.log[slot].born()) }, rows, changed)
				require.Equal(t, want, changed)
				for _, slot := range slots[:min(8, len(slots))] {
					x.check(int(slot))
				}
			}
			for slot := range x.log {
				x.check(slot)
			}
		}
	}
}

func TestRefreshForgetsWhatWasBefore(t *testing.T) {
	h := New(1, 8)
	h.Begin(3)
	require.True(t, h.Set(3, 10, 10, []uint32{1}))
	h.Refresh(3, 20)
	_, found := h.At(3, 19)
	require.Equal(t, Forgotten, found)
	row, found := h.At(3, 20)
	require.Equal(t, Present, found)
	require.Equal(t, []uint32{1}, row)
}

// What a slot was before its latest change is known as long as that lasts, however often
// the slots beside it change.
func TestTheVersionBeforeTheLastIsKept(t *testing.T) {
	h := New(1, 8)
	for slot := range 3 {
		h.Begin(slot)
	}
	h.Set(0, 1, 1, []uint32{100})
	h.Set(1, 1, 1, []uint32{200})
	h.Set(1, 5, 1, []uint32{201})
	h.Set(0, 9, 1, []uint32{101})
	h.Remove(1, 9)
	for now := delta.Tick(10); now < 1000; now++ {
		h.Set(2, now, 1, []uint32{uint32(now)})
	}
	for _, at := range []delta.Tick{1, 8} {
		row, found := h.At(0, at)
		require.Equal(t, Present, found)
		require.Equal(t, []uint32{100}, row)
	}
	row, found := h.At(1, 5)
	require.Equal(t, Present, found)
	require.Equal(t, []uint32{201}, row)
	_, found = h.At(1, 4)
	require.Equal(t, Forgotten, found)
	_, found = h.At(1, 9)
	require.Equal(t, Absent, found)
	h.Set(0, 1000, 1, []uint32{102})
	row, found = h.At(0, 999)
	require.Equal(t, Present, found)
	require.Equal(t, []uint32{101}, row)
}

// Blocks in which ever more or fewer slots change, in any order, with components that go
// and come: nothing in the log is lost or overwritten.
func TestHistoryOfCrowds(t *testing.T) {
	rng := randomOf(t)
	for _, window := range []int{1, 2, 5, 12, 33} {
		words := []int{1, 2, 3}[rng.IntN(3)]
		x := newHistoryTest(t, words, window, 1<<32-30)
		const slots = blockSlots + 20
		for slot := range slots {
			x.h.Begin(slot)
			x.log.begin(slot, x.now)
		}
		share := 1.0
		for range roundsOf(400, 200) {
			x.now += 1 + uint64(rng.IntN(20)/19)
			if rng.IntN(8) == 0 {
				share = []float64{0, 0.1, 0.5, 0.9, 1}[rng.IntN(5)]
			}
			order := rng.Perm(slots)
			if rng.IntN(2) == 0 {
				slices.Sort(order)
			}
			var some []uint32
			var rows []uint32
			for _, slot := range order {
				if rng.Float64() < share {
					x.log[slot].known = true
					some = append(some, uint32(slot))
					for range words {
						rows = append(rows, rng.Uint32N(3))
					}
				}
			}
			want, changed := make([]uint64, (len(some)+63)/64), make([]uint64, (len(some)+63)/64)
			for i, slot := range some {
				if x.put(int(slot), slices.Clone(rows[i*words:][:words]), true) {
					want[i/64] |= 1 << (i % 64)
				}
			}
			x.h.SetRows(some, delta.Tick(x.now), func(slot int) delta.Tick { return delta.Tick(x.log[slot].born()) }, rows, changed)
			require.Equal(t, want, changed)
			if rng.IntN(3) == 0 {
				slot := rng.IntN(slots)
				x.require(x.put(slot, nil, false) == x.h.Remove(slot, delta.Tick(x.now)), "Remove of %d", slot)
			}
			for range 6 {
				x.check(rng.IntN(slots))
			}
			x.checkLog(0)
		}
		for slot := range slots {
			x.check(slot)
		}
	}
}

func TestSetNeighboursRefusesMoreThanAWord(t *testing.T) {
	h := New(1, 8)
	require.PanicsWithValue(t, "history: SetNeighbours of more than 64 slots: use SetRows", func() {
		h.SetNeighbours(0, 65, 1, func(int) delta.Tick { return 1 }, make([]uint32, 65))
	})
}

// An empty log is not taken for one of tick 0.
func TestHistoryBeginsAtAnyTick(t *testing.T) {
	for _, slots := range [][]uint32{{3}, {3, 4}, {4, 3}} {
		h := New(1, 8)
		born := func(int) delta.Tick { return 1<<32 - 1 }
		changed := make([]uint64, 1)
		h.SetRows(slots, 1<<32-1, born, []uint32{1, 1}[:len(slots)], changed)
		h.SetRows(slots, 0, born, []uint32{2, 2}[:len(slots)], changed)
		row, found := h.At(3, 1<<32-1)
		require.Equal(t, Present, found)
		require.Equal(t, []uint32{1}, row)
		row, found = h.At(3, 0)
		require.Equal(t, Present, found)
		require.Equal(t, []uint32{2}, row)
	}
}

// TestWhatIsSureDoesNotDependOnOthers: two histories of which slot 3 has the same past, and the slots beside it another one,
// are sure of the same ticks, and know what they are sure of.
func TestWhatIsSureDoesNotDependOnOthers(t *testing.T) {
	const slot, window, ticks = 3, 8, 400
	lucky := [2]int{} // what was known all the same
	for seed := range uint64(12) {
		own := rand.New(rand.NewPCG(seed, 1))
		others := [2]*rand.Rand{rand.New(rand.NewPCG(seed, 2)), rand.New(rand.NewPCG(seed, 3))}
		first := ^delta.Tick(ticks / 2) // so that ticks wrap
		h := [2]*Rows{New(1, window), New(1, window)}
		h[0].Begin(slot)
		h[1].Begin(slot)
		chance, beside := 1+own.IntN(20), [2]int{others[0].IntN(3), 1 + others[1].IntN(10)}
		for n := range delta.Tick(ticks) {
			now := first + n
			if n == 0 || own.IntN(chance) == 0 {
				row, remove := []uint32{own.Uint32()}, own.IntN(4) == 0
				for i := range h {
					if remove {
						h[i].Remove(slot, now)
					} else {
						h[i].Set(slot, now, first, row)
					}
				}
			}
			for i := range h {
				for range beside[i] {
					h[i].Set(4+others[i].IntN(20), now, now, []uint32{others[i].Uint32()})
				}
			}
			for at := first; at != now+1 && n%8 == 0; at++ {
				sure := h[0].Sure(slot, at, now)
				require.Equal(t, sure, h[1].Sure(slot, at, now), "seed %d: tick %d at %d", seed, n, at-first)
				if now-at <= window {
					require.True(t, sure)
				}
				for i := range h {
					_, found := h[i].At(slot, at)
					require.False(t, sure && found == Forgotten, "seed %d: tick %d at %d", seed, n, at-first)
					if !sure && found != Forgotten {
						lucky[i]++
					}
				}
			}
		}
	}
	require.NotZero(t, lucky[0])
	require.NotEqual(t, lucky[0], lucky[1])
}

// TestWhatDoesNotRestTakesNoMemoryForIt: a version that ended longer than a window ago is kept where it is the one before the
// present. A block in which there is none has no room for such.
func TestWhatDoesNotRestTakesNoMemoryForIt(t *testing.T) {
	const window = 8
	for _, every := range []delta.Tick{1, 3, window - 1, window, window + 1, 3 * window} {
		h := New(1, window)
		h.Begin(5)
		h.Begin(6)
		for now := delta.Tick(1); now < 20*window; now++ {
			h.Set(5, now, 1, []uint32{uint32(now / every)})
			if every < window {
				h.Set(6, now, 1, []uint32{uint32(now)})
			}
		}
		require.Nil(t, h.blocks[0].past.kept.records, "a change in every %d ticks", every)
	}
}
