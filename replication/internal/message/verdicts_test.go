package message

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// firstTicks are where ticks begin: 0 would lie after all of them from 2^31 on, and they wrap.
var firstTicks = []delta.Tick{1, 1<<31 + 5, 1<<32 - 700}

// TestMissesAreTheTicksWithoutAnInputInTime: inputs come in time, late or not at all, the client gives none for some
// ticks, and there are outages of any length, which leave the inputs of 128 ticks before in their places.
func TestMissesAreTheTicksWithoutAnInputInTime(t *testing.T) {
	const before, ticks, ahead = 40, 6000, 5
	for _, first := range firstTicks {
		rand := rand.New(rand.NewPCG(replicationtest.Seed(t), uint64(first)))
		var r inputRing
		had := map[delta.Tick]bool{}      // in time
		later := map[delta.Tick][]int32{} // by the tick in which they arrive: how long ago their ticks were
		outage, missed, started := 0, 0, false
		for now := first; now != first+ticks; now++ {
			require.Equal(t, wantedMisses(had, first+before, now-1, started), r.misses(now-1))
			for _, ago := range later[now] {
				r.take(&inputRow{tick: now - delta.Tick(ago), present: true}, now-1)
			}
			tick := now + ahead
			switch outage--; {
			case tick-first < before:
			case outage > 0:
			case !started:
				require.Equal(t, inputInTime, r.take(&inputRow{tick: tick, present: true}, now-1))
				had[tick], started = true, true
				require.Equal(t, first+before, tick)
			case rand.IntN(100) == 0:
				outage = 1 + rand.IntN(1+rand.IntN(300))
			case rand.IntN(20) == 0: // late, too late to be of use, or lost
				ago := 1 + rand.Int32N(40)
				later[tick+delta.Tick(ago)] = append(later[tick+delta.Tick(ago)], ago)
			case rand.IntN(20) == 0:
				require.Equal(t, inputIgnored, r.take(&inputRow{tick: tick}, now-1))
			default:
				require.Equal(t, inputInTime, r.take(&inputRow{tick: tick, present: true}, now-1))
				had[tick] = true
			}
			if r.endTick(now); started && !had[now] && now-first >= before && now-first < ticks {
				missed++
			}
		}
		require.Greater(t, missed, 1000)
	}
}

// wantedMisses returns the mask of the ticks up to now that had no input in time, from the first one given on.
func wantedMisses(had map[delta.Tick]bool, given, now delta.Tick, started bool) (mask uint32) {
	for back := range delta.Tick(32) {
		if tick := now - back; started && int32(tick-given) >= 0 && !had[tick] {
			mask |= 1 << back
		}
	}
	return mask
}

// TestVerdictsOfAnyReports: reports get lost, come twice and late. What they had is known for 64 ticks, and nothing
// else.
func TestVerdictsOfAnyReports(t *testing.T) {
	for _, first := range firstTicks {
		rand := rand.New(rand.NewPCG(replicationtest.Seed(t), uint64(first)))
		missed := make([]bool, 3000)
		for i := range missed {
			missed[i] = rand.IntN(6) == 0
		}
		var v Verdicts
		learnt, reported := map[delta.Tick]bool{}, map[delta.Tick]bool{}
		newest, taken := 0, 0
		for at := 32; at < len(missed); at += rand.IntN(12) {
			if rand.IntN(50) == 0 {
				at += rand.IntN(200) // an outage
			}
			n := max(at-rand.IntN(1+rand.IntN(120)), 0) // an old one, or one that came before
			if n >= len(missed) || rand.IntN(3) == 0 {
				n = min(at, len(missed)-1)
			}
			mask := uint32(0)
			for back := range min(32, n+1) {
				if missed[n-back] {
					mask |= 1 << back
				}
			}
			count, known := v.Count, v.Known
			v.note(first+delta.Tick(n), mask)
			fresh := !known || n > newest
			if fresh {
				newest = n
			}
			require.Equal(t, first+delta.Tick(newest), v.Tick)
			for back := range min(32, n+1) {
				if tick := first + delta.Tick(n-back); v.Tick-tick < verdictTicks {
					fresh = fresh || missed[n-back] && !learnt[tick]
					reported[tick], learnt[tick] = true, missed[n-back]
				}
			}
			require.Equal(t, fresh, v.Count == count+1)
			if !fresh {
				require.Equal(t, count, v.Count)
			}
			for back := range delta.Tick(verdictTicks) {
				if tick := v.Tick - back; back <= delta.Tick(newest) {
					require.Equal(t, reported[tick], v.Reported>>back&1 == 1, "%d ticks before %d", back, v.Tick)
					require.Equal(t, learnt[tick], v.Missed>>back&1 == 1, "%d ticks before %d", back, v.Tick)
				}
			}
			taken++
		}
		require.Greater(t, taken, 200)
	}
}

// TestVerdictsLeaveAnOldTickAlone: of a report half of all ticks before, or any that is older than what is kept.
func TestVerdictsLeaveAnOldTickAlone(t *testing.T) {
	for _, first := range firstTicks {
		var v Verdicts
		v.note(first, 5)
		v.note(first+40, 1)
		want := v
		require.Equal(t, Verdicts{Known: true, Tick: first + 40, Reported: 1<<40*(1<<24-1) | 1<<32 - 1, Missed: 5<<40 | 1, Count: 2},
			Verdicts{v.Known, v.Tick, v.Reported&^(1<<32-1) | 1<<32 - 1, v.Missed, v.Count})
		for _, ago := range []delta.Tick{64, 65, 1000, 1 << 31} {
			v.note(want.Tick-ago, 1<<32-1)
			require.Equal(t, want, v)
		}
		v.note(want.Tick+1000, 0)
		require.Equal(t, Verdicts{Known: true, Tick: want.Tick + 1000, Reported: 1<<32 - 1, Count: 3}, v)
	}
}

// TestReportsGoOnWhileThereAreMisses, but not for a client that gives no inputs any more.
func TestReportsGoOnWhileThereAreMisses(t *testing.T) {
	for _, first := range firstTicks {
		var r inputRing
		require.False(t, r.recent(first))
		r.take(&inputRow{tick: first, present: true}, first-1)
		require.True(t, r.recent(first))
		require.True(t, r.recent(first+wire.InputTicks-1))
		require.False(t, r.recent(first+wire.InputTicks))
		require.False(t, r.recent(first+1<<28))
	}
}
