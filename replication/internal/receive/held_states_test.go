package receive

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/stretchr/testify/require"
)

// naiveHeld lists the ticks of the held states, in any order, as numbers that do not wrap.
type naiveHeld []int64

// needed reports whether the state of tick t is still needed: no newer state is already keep ticks
// old.
func (h naiveHeld) needed(t, now, keep int64) bool {
	return !slices.ContainsFunc(h, func(u int64) bool { return u > t && now-u >= keep })
}

func (h *naiveHeld) put(t, now, keep int64) bool {
	kept := h.needed(t, now, keep)
	if kept && !slices.Contains(*h, t) {
		*h = append(*h, t)
	}
	h.tidy(now, keep)
	return kept
}

func (h *naiveHeld) tidy(now, keep int64) {
	all := slices.Clone(*h)
	*h = slices.DeleteFunc(*h, func(t int64) bool { return !all.needed(t, now, keep) })
}

func (h naiveHeld) find(t int64) (tick int64, ok bool) {
	for _, u := range h {
		if u <= t && (!ok || u > tick) {
			tick, ok = u, true
		}
	}
	return tick, ok
}

// after returns the first held tick after t.
func (h naiveHeld) after(t int64) (tick int64, ok bool) {
	for _, u := range h {
		if u > t && (!ok || u < tick) {
			tick, ok = u, true
		}
	}
	return tick, ok
}

// oneWord is a layout whose states have one word.
var oneWord = &Layout{words: 1}

// holdTick inserts a state that contains its own tick.
func holdTick(h *HeldStates, t, now, keep delta.Tick) bool {
	s := h.put(t, now, keep, oneWord.words)
	if s != nil {
		s.hold(oneWord, []uint32{uint32(t)})
	}
	return s != nil
}

func TestHeldStatesMatchTheNaiveList(t *testing.T) {
	replicationtest.OneGoroutine(t)
	rng := rand.New(rand.NewPCG(replicationtest.Seed(t), 5))
	for range 60 {
		keep := int64(rng.IntN(20))
		if rng.IntN(4) == 0 {
			keep = int64(16 + rng.IntN(225))
		}
		late, pause := 1+rng.IntN(40), 1+rng.IntN(6)
		now := int64(1)<<32*int64(rng.IntN(2)) + int64(rng.IntN(400)) // ticks wrap in half of the runs
		var held HeldStates
		var naive naiveHeld
		for range 600 {
			now += int64(rng.IntN(pause))
			switch rng.IntN(100) {
			case 0:
				now += int64(rng.IntN(2 * int(keep+1)))
			case 1:
				now += int64(rng.IntN(1 << 22))
			}
			at := now
			if rng.IntN(3) == 0 {
				at -= int64(rng.IntN(late))
			}
			if rng.IntN(20) == 0 {
				held.tidy(delta.Tick(now), delta.Tick(keep))
				naive.tidy(now, keep)
			} else {
				require.Equal(t, naive.put(at, now, keep), holdTick(&held, delta.Tick(at), delta.Tick(now), delta.Tick(keep)))
			}
			require.EqualValues(t, len(naive), held.N)
			for range 4 {
				named := now - int64(rng.IntN(1+rng.IntN(300)))
				want, ok := naive.find(named)
				s := held.Find(delta.Tick(named))
				require.Equal(t, ok, s != nil)
				exact := held.At(delta.Tick(named))
				require.Equal(t, ok && want == named, exact != nil)
				if ok {
					require.Equal(t, delta.Tick(want), s.Tick)
					require.Equal(t, []uint32{uint32(want)}, s.Words)
				}
				before, after := held.Around(delta.Tick(named))
				require.Same(t, s, before)
				if next, some := naive.after(named); some {
					require.Equal(t, delta.Tick(next), after.Tick)
				} else {
					require.Nil(t, after)
				}
			}
			require.LessOrEqual(t, len(naive), int(keep)+1)
			require.LessOrEqual(t, len(held.Ring), max(minHeld, int(keep)+2))
		}
	}
}

// TestABaselineTickNamesTheStateValidThen plays a slot that changes from time to time and is sent
// again and again, over a network that loses, delays and reorders packets. The client finds the
// same state as the server for every acknowledged baseline tick; for a late packet it may find
// none.
func TestABaselineTickNamesTheStateValidThen(t *testing.T) {
	replicationtest.OneGoroutine(t)
	type packet struct {
		sent, arrives, acked int // ticks; acked is 0 if the ack is lost
		carries              bool
		named                int // the baseline tick; 0: none
	}
	rng := rand.New(rand.NewPCG(replicationtest.Seed(t), 5))
	for range 30 {
		window := 8 + rng.IntN(60)
		delay, changes := 1+rng.IntN(window+10), 1+rng.IntN(2*window)
		var held HeldStates
		newest, found, late := 0, 0, 0
		changed := []int{1} // ticks of changes
		version := func(tick int) int {
			n, _ := slices.BinarySearch(changed, tick+1)
			return n
		}
		const first = 1<<32 - 1000 // the first tick on the wire
		wire := func(tick int) delta.Tick { return first + delta.Tick(tick) }
		var way []packet
		var acked []int // ticks of the states that the server knows to be held
		for now := 2; now < 2000; now++ {
			if rng.IntN(changes) == 0 {
				changed = append(changed, now)
			}
			for i := range way {
				p := &way[i]
				if p.arrives == now {
					newest = max(newest, p.sent)
					if p.named > 0 {
						switch s := held.Find(wire(p.named)); {
						case s != nil:
							found++
							require.Equal(t, version(p.named), int(s.Words[0]))
						default:
							late++
							require.Greater(t, newest-p.sent, window, "only what is late finds nothing")
						}
					}
					if p.carries {
						if s := held.put(wire(p.sent), wire(newest), 2*delta.Tick(window), oneWord.words); s != nil {
							s.hold(oneWord, []uint32{uint32(version(p.sent))})
						}
					}
				}
				if p.acked == now && p.carries {
					acked = append(acked, p.sent)
				}
			}
			way = slices.DeleteFunc(way, func(p packet) bool { return p.arrives <= now && p.acked <= now })
			p := packet{sent: now, carries: rng.IntN(3) > 0}
			if rng.IntN(4) > 0 {
				p.arrives = now + 1 + rng.IntN(delay)
				if rng.IntN(20) == 0 {
					p.arrives += rng.IntN(3 * window)
				}
				if rng.IntN(4) > 0 {
					p.acked = p.arrives + rng.IntN(delay)
				}
			}
			// The baseline may be any tick at which an acknowledged state was valid.
			if named := now - 1 - rng.IntN(window); named > 0 && slices.ContainsFunc(acked, func(at int) bool {
				return at <= named && version(at) == version(named)
			}) {
				p.named = named
			}
			way = append(way, p)
		}
		require.Greater(t, found, late)
	}
}

// TestHeldStatesOfAnyTicksAreBounded: a hostile server sends ticks in any order.
func TestHeldStatesOfAnyTicksAreBounded(t *testing.T) {
	replicationtest.OneGoroutine(t)
	rng := rand.New(rand.NewPCG(replicationtest.Seed(t), 5))
	jump := func() delta.Tick {
		switch rng.IntN(4) {
		case 0:
			return delta.Tick(rng.Uint32N(20))
		case 1:
			return -delta.Tick(rng.Uint32N(20))
		case 2:
			return never + delta.Tick(rng.Uint32N(3)) - 1
		default:
			return delta.Tick(rng.Uint32())
		}
	}
	for range 40 {
		keep := delta.Tick(rng.IntN(30))
		var held HeldStates
		now := jump()
		for range 1000 {
			now += jump()
			holdTick(&held, now-jump(), now, keep)
			require.LessOrEqual(t, held.N, int32(keep)+1)
			require.LessOrEqual(t, len(held.Ring), max(minHeld, int(keep)+2))
			for i := range int(held.N) {
				s := held.nth(i)
				require.Equal(t, []uint32{uint32(s.Tick)}, s.Words)
				require.Less(t, now-s.Tick, delta.Tick(never))
				if i > 0 {
					require.Greater(t, now-held.nth(i-1).Tick, now-s.Tick)
				}
			}
			for range 10 {
				at := now - jump()
				if s := held.Find(at); s != nil {
					require.NotNil(t, s.Layout)
				}
				if s := held.At(at); s != nil {
					require.Equal(t, at, s.Tick)
				}
			}
		}
	}
}

// TestHeldStatesUseTheirMemoryAgain in the order of ticks, and where some are late.
func TestHeldStatesUseTheirMemoryAgain(t *testing.T) {
	for _, late := range []bool{false, true} {
		rng := rand.New(rand.NewPCG(1, 2))
		var held HeldStates
		words, now := make([]uint32, 20), delta.Tick(0)
		put := func() {
			now++
			at := now
			if late {
				at -= delta.Tick(rng.IntN(8))
			}
			if s := held.put(at, now, 32, oneWord.words); s != nil {
				s.hold(oneWord, words)
			}
		}
		for range 200 {
			put()
		}
		require.Zero(t, testing.AllocsPerRun(1000, put))
	}
}

// TestStatesThatRestForMonthsStayInReach: a very old state counts as one of a later tick, still so
// old that it is valid at every tick that may be named.
func TestStatesThatRestForMonthsStayInReach(t *testing.T) {
	const born, keep = 1000, 64
	var held HeldStates
	holdTick(&held, born-1, born-1, keep)
	holdTick(&held, born, born, keep)
	now := delta.Tick(born)
	for range 40 { // ticks wrap twice
		now += wire.Ancient / 4
		held.refresh(now)
		s := held.Find(now - wire.Ancient)
		if now-born <= wire.Ancient {
			s = held.Find(born)
		}
		require.NotNil(t, s, "%d ticks later", now-born)
		require.Equal(t, []uint32{born}, s.Words)
		require.Same(t, s, held.Find(now))
	}
}

// TestLateStatesAndGaps: a state that comes late, from after the slot was empty, is the first one of the new appearance
// instead of the one that was; one from before leaves that as it is.
func TestLateStatesAndGaps(t *testing.T) {
	for _, wrap := range []delta.Tick{100, 5, 1<<31 + 5} { // the gap is from wrap-30 on
		var h HeldStates
		end, now := wrap-30, wrap+20
		h.put(end-20, now, 64, 0)
		s := h.put(wrap, now, 64, 0)
		s.since = gone | 30
		from, ok := h.Newest().Ended()
		require.True(t, ok)
		require.Equal(t, end, from)
		_, ok = h.Newest().Rested()
		require.False(t, ok)

		h.put(end-10, now, 64, 0) // of before
		from, ok = h.Newest().Ended()
		require.True(t, ok)
		require.Equal(t, end, from)
		_, ok = h.At(end - 10).Ended()
		require.False(t, ok)

		h.put(end+10, now, 64, 0) // of after
		_, ok = h.Newest().Ended()
		require.False(t, ok)
		from, ok = h.At(end + 10).Ended()
		require.True(t, ok)
		require.Equal(t, end, from)
	}
}

// TestRestsAndLateStates: what was known of the state before is not taken to be of a late one that came between.
func TestRestsAndLateStates(t *testing.T) {
	var h HeldStates
	h.put(60, 100, 64, 0)
	h.put(90, 100, 64, 0).since = 20
	until, ok := h.Newest().Rested()
	require.True(t, ok)
	require.EqualValues(t, 70, until)
	h.put(65, 100, 64, 0)
	until, ok = h.Newest().Rested()
	require.True(t, ok, "it came before that")
	require.EqualValues(t, 70, until)
	h.put(80, 100, 64, 0)
	_, ok = h.Newest().Rested()
	require.False(t, ok)
	_, ok = h.At(80).Rested()
	require.False(t, ok)
}

// TestEndedAfter: a slot was empty between two states if the later one has it, whichever of them is the newest.
func TestEndedAfter(t *testing.T) {
	for _, wrap := range []delta.Tick{100, 5, 1<<31 + 5} {
		var h HeldStates
		require.False(t, h.EndedAfter(wrap))
		h.put(wrap-20, wrap, 64, 0)
		require.False(t, h.EndedAfter(wrap-50))
		h.put(wrap-5, wrap, 64, 0).since = gone | 10
		require.True(t, h.EndedAfter(wrap-20))
		require.False(t, h.EndedAfter(wrap-5))
		h.put(wrap, wrap, 64, 0)
		require.True(t, h.EndedAfter(wrap-20))
		require.False(t, h.EndedAfter(wrap-5))
	}
}
