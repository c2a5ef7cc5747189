package delta

import (
	"fmt"
	"math/bits"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// A fullLog is the naive twin of a History: it keeps every version for ever, by ticks
// that do not wrap.
type fullLog map[int]*slotLog

type slotLog struct {
	versions  []loggedVersion // the first one is the absence at the beginning
	refreshed uint64          // what was before is forgotten
	known     bool            // there was a Set
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

// put adds a version and reports whether it is news.
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
	h      *History
	log    fullLog
	words  int
	window uint64
	now    uint64
}

// checkHistory lets a script use a history of the given size. The ticks begin shortly
// before they wrap.
func checkHistory(t testing.TB, words, window int, s *script) {
	x := &historyTest{t, NewHistory(words, window), fullLog{}, words, uint64(window), 1<<32 - 40}
	for len(s.rest) > 0 {
		slot := []int{0, 1, pageSlots - 1, pageSlots, 3*pageSlots + 7}[s.below(5)]
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
			x.require(l.put(x.now, nil, false) == x.h.Remove(slot, Tick(x.now)), "Remove of %d", slot)
		case op == 7:
			limit := x.now - min(uint64(s.byte()), x.now-l.born())
			x.h.Refresh(slot, Tick(limit))
			if n := l.newest(); l.known && n.tick < limit {
				l.refreshed = max(l.refreshed, limit)
			}
		default:
			row := make([]uint32, words)
			for i := range row {
				row[i] = uint32(s.below(3))
			}
			news := x.h.Set(slot, Tick(x.now), Tick(l.born()), row)
			x.require(l.put(x.now, slices.Clone(row), true) == news, "Set of %d to %v", slot, row)
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

// check compares all that the history says of a slot with the log.
func (x *historyTest) check(slot int) {
	x.t.Helper()
	l := x.log[slot]
	n := l.newest()
	x.require(x.h.Has(slot) == n.has, "Has(%d)", slot)
	if n.has {
		x.require(slices.Equal(x.h.Row(slot), n.row), "Row(%d) is %v, want %v", slot, x.h.Row(slot), n.row)
	}
	began := max(n.tick, l.refreshed)
	for t := max(l.born(), x.now-2*x.window-10); t <= x.now; t++ {
		v := l.at(t)
		row, found := x.h.At(slot, Tick(t))
		switch found {
		case Forgotten:
			// The guarantee: never from a window before the latest change on, unless Refresh
			// was told to.
			x.require(l.known && (t+x.window < n.tick || t < l.refreshed), "At(%d, %d) is forgotten, the latest change was at %d", slot, t, n.tick)
		case Absent:
			x.require(!v.has, "At(%d, %d) is absent, want %v", slot, t, v.row)
		case Present:
			x.require(v.has && slices.Equal(row, v.row), "At(%d, %d) is %v, want %v, %v", slot, t, row, v.row, v.has)
		}
		x.require(x.h.ChangedSince(slot, Tick(t)) == (l.known && began > t), "ChangedSince(%d, %d)", slot, t)
	}
	if p := x.h.page(slot); p != nil && p.rings != nil {
		r := &p.rings[slot%pageSlots]
		most := max(4, 1<<bits.Len64(max(x.window, 1)-1)) // the window rounded up to a power of two
		room := len(r.records) / (x.words + recordRow)
		x.require(room <= most && int(r.n) <= room, "a ring of %d rows with room for %d", r.n, room)
		x.require(room*(x.words+recordRow) == len(r.records) && int(r.start) <= len(r.records), "a ring of %d words from %d on", len(r.records), r.start)
	}
}

func TestHistoryMatchesTheFullLog(t *testing.T) {
	rng := randomOf(t)
	for _, window := range []int{0, 1, 2, 3, 4, 5, 8, 13, 32, 64} {
		for _, words := range []int{0, 1, 3} {
			checkHistory(t, words, window, &script{randomBytes(rng, 3000)})
		}
	}
}

// A row that changes every tick is the most that a ring has to hold.
func TestHistoryOfARowThatChangesEveryTick(t *testing.T) {
	for _, window := range []int{1, 3, 4, 7, 64, 100} {
		x := &historyTest{t, NewHistory(1, window), fullLog{}, 1, uint64(window), 1<<32 - 150}
		x.h.Begin(0)
		x.log.begin(0, x.now)
		x.log[0].known = true
		for i := range uint32(400) {
			x.require(x.h.Set(0, Tick(x.now), Tick(x.log[0].born()), []uint32{i}), "Set is news")
			x.log[0].put(x.now, []uint32{i}, true)
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
	x := &historyTest{t, NewHistory(1, window), fullLog{}, 1, window, 7}
	x.h.Begin(0)
	x.log.begin(0, x.now)
	l := x.log[0]
	for x.now < 1<<36 {
		switch rng.IntN(3) {
		case 0:
			row := []uint32{rng.Uint32()}
			x.h.Set(0, Tick(x.now), Tick(max(l.born(), x.now-min(x.now, ancient))), row)
			l.put(x.now, row, true)
			l.known = true
		case 1:
			x.now += rng.Uint64N(ancient / 4)
		default:
			x.now += 1 + rng.Uint64N(window)
		}
		limit := x.now - min(x.now, ancient)
		x.h.Refresh(0, Tick(limit))
		if n := l.newest(); l.known && n.tick < limit {
			l.refreshed = max(l.refreshed, limit)
		}
		if x.now > window && x.now-window > l.born() {
			x.check(0)
		}
	}
	require.Greater(t, len(l.versions), 10)
}

func TestAVersionThatLastedNoTickLeavesNoTrace(t *testing.T) {
	h := NewHistory(1, 8)
	h.Begin(3)
	require.True(t, h.Set(3, 10, 10, []uint32{1}))
	require.True(t, h.Set(3, 10, 10, []uint32{2}))
	require.True(t, h.Remove(3, 10))
	require.False(t, h.Remove(3, 11))
	_, found := h.At(3, 10)
	require.Equal(t, Absent, found)
	require.Nil(t, h.pages[0].rings)
}

func TestNothingIsKnownOfASlotThatWasNeverSet(t *testing.T) {
	h := NewHistory(2, 8)
	h.Begin(5000)
	h.Refresh(5000, 3)
	require.False(t, h.Remove(5000, 1))
	require.False(t, h.Has(5000))
	require.False(t, h.ChangedSince(5000, 0))
	_, found := h.At(5000, 1)
	require.Equal(t, Absent, found)
	require.Empty(t, h.pages)
}

// Memory is bounded even where the ticks make no sense.
func TestHistoryOfTicksThatGoBackIsBounded(t *testing.T) {
	h := NewHistory(1, 20)
	for i := range uint32(1000) {
		h.Set(0, Tick(1-i%2), 0, []uint32{i})
	}
	require.LessOrEqual(t, len(h.pages[0].rings[0].records), 32*(recordRow+1))
}

func TestHistoryRefusesNegativeSizes(t *testing.T) {
	const hint = ": use at least 0 words and 0 to 2^30 ticks"
	require.PanicsWithValue(t, "delta: a history of -1 words and 8 ticks"+hint, func() { NewHistory(-1, 8) })
	require.PanicsWithValue(t, "delta: a history of 1 words and -8 ticks"+hint, func() { NewHistory(1, -8) })
	require.PanicsWithValue(t, "delta: a history of 1 words and 1073741825 ticks"+hint, func() { NewHistory(1, 1<<30+1) })
}

// Many slots at once are as one after the other, whether they follow one another or not.
func TestSetRowsIsSetForEverySlot(t *testing.T) {
	rng := randomOf(t)
	for _, words := range []int{0, 1, 2, 3, 5} {
		for _, window := range []int{0, 3, 20} {
			x := &historyTest{t, NewHistory(words, window), fullLog{}, words, uint64(window), 1<<32 - 40}
			for range 120 {
				x.now += uint64(rng.IntN(3))
				var slots []uint32
				if first := rng.Uint32N(3 * pageSlots); rng.IntN(3) > 0 { // neighbours, across pages too
					for i := range 1 + rng.Uint32N(150) {
						slots = append(slots, first+i)
					}
				} else {
					for _, i := range rng.Perm(3 * pageSlots)[:1+rng.IntN(150)] {
						slots = append(slots, uint32(i))
					}
				}
				rows := make([]uint32, len(slots)*words)
				change := rng.IntN(3)
				news, want := make([]uint64, (len(slots)+63)/64), make([]uint64, (len(slots)+63)/64)
				news[0], want[0] = 1<<63, 1<<63 // stays
				for i, slot := range slots {
					l := x.log[int(slot)]
					if l == nil || rng.IntN(100) == 0 {
						x.h.Begin(int(slot))
						x.log.begin(int(slot), x.now)
						l = x.log[int(slot)]
					} else if rng.IntN(20) == 0 {
						x.require(l.put(x.now, nil, false) == x.h.Remove(int(slot), Tick(x.now)), "Remove of %d", slot)
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
					if l.put(x.now, slices.Clone(row), true) {
						want[i/64] |= 1 << (i % 64)
					}
				}
				x.h.SetRows(slots, Tick(x.now), func(slot int) Tick { return Tick(x.log[slot].born()) }, rows, news)
				require.Equal(t, want, news)
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
	h := NewHistory(1, 8)
	h.Begin(3)
	require.True(t, h.Set(3, 10, 10, []uint32{1}))
	h.Refresh(3, 20)
	_, found := h.At(3, 19)
	require.Equal(t, Forgotten, found)
	row, found := h.At(3, 20)
	require.Equal(t, Present, found)
	require.Equal(t, []uint32{1}, row)
}
