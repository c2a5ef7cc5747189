package ackstate

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
	"github.com/stretchr/testify/require"
)

// TestBaselinesOfASendInterval: with a send interval, both baselines are ticks of the peer's sends.
func TestBaselinesOfASendInterval(t *testing.T) {
	for interval := delta.Tick(2); interval <= snapshot.MaxPeriod; interval++ {
		for phase := range 2 * interval {
			p := bases{Snap: newSnap(0), Interval: interval, Phase: phase}
			for at := delta.Tick(100); at < 100+2*interval; at++ {
				p.Acks.Through, p.Snap.Tick = at, at+interval
				last := at
				for (last+phase)%interval != 0 {
					last--
				}
				require.Equal(t, last, p.LastSend(at), "interval %d, phase %d, tick %d", interval, phase, at)
				p.ChooseLikely()
				require.Equal(t, snapshot.BasePair{Base: last, Second: last - interval}, p.Likely)
			}
		}
	}
}

// TestBaselinesOnAGrid: peers without a send interval share a grid of ticks.
func TestBaselinesOnAGrid(t *testing.T) {
	snap := newSnap(112)
	snap.Bases.Fix(4)
	p := bases{Snap: snap, Acks: AckTable{Through: 107}, Interval: 1, Phase: 3}
	require.EqualValues(t, 107, p.LastSend(107))
	require.EqualValues(t, 104, p.Base())
	require.Equal(t, delta.Second(104), p.Second(104))
}

// TestSecondBaselinesPredict: whatever the round trip, the second baseline is the nearest tick that peers have
// in common, that is as far as suits the game, and that predicts. In a short window it is nearer.
func TestSecondBaselinesPredict(t *testing.T) {
	for interval := delta.Tick(1); interval <= snapshot.MaxPeriod; interval++ {
		for tick := delta.Tick(1000); tick < 1008; tick++ {
			for age := delta.Tick(1); age <= 40; age++ {
				for _, span := range snapshot.Spans {
					p := bases{Snap: newSnap(tick), Interval: interval}
					p.Snap.Steady.Span = span
					base := tick - age
					farther := func(span delta.Tick) delta.Tick {
						at := base - interval
						for !p.Snap.Predicts(snapshot.BasePair{Base: base, Second: at}) || base-at < span || interval == 1 && at%delta.SecondGrid != 0 {
							at -= interval
						}
						return at
					}
					want, near := farther(span), farther(delta.SecondGrid)
					if interval > 1 {
						near = farther(0)
					}
					require.Equal(t, want, p.Second(base), "interval %d, tick %d, base %d", interval, tick, base)
					if interval == 1 && age <= delta.SecondGrid*delta.MaxExtrapolation && span == delta.SecondGrid {
						require.Equal(t, delta.Second(base), want)
					}
					p.Snap.Opts.Window = int(tick - want - 1)
					require.Equal(t, near, p.Second(base))
					p.Snap.Opts.Window, p.Classes.Compact = 64, true
					require.Equal(t, near, p.Second(base))
				}
			}
		}
	}
}

// newSnap returns a snapshot of a tick, without slots.
func newSnap(tick delta.Tick) *snapshot.Snapshot {
	return &snapshot.Snapshot{Tick: tick, Opts: &config.ServerOptions{Window: 64}}
}

// TestLapsedSlotsAreFound: when a block has its turn, exactly those of its slots have lapsed that the peer holds only as
// of ticks that are too old, or will be soon. Most turns need no look at the slots. Acknowledgements may come late, or
// not for a while.
func TestLapsedSlotsAreFound(t *testing.T) {
	rng, lapsed := rand.New(rand.NewPCG(replicationtest.Seed(t), 0)), 0
	for _, start := range []delta.Tick{0, math.MaxUint32 - 300} {
		p := newTrackedPeer()
		p.Snap.Tick = start
		p.Begin(0, false, false)
		var all, young uint64
		acks := map[delta.Tick][]uint32{} // sequences, by when the ack arrives
		for p.Snap.Tick-start < 4000 {
			now := p.Snap.Tick + 1
			for _, sequence := range acks[now] {
				if p.Log.Find(sequence) != nil {
					p.acknowledge(sequence)
				}
			}
			rare := rng.Uint64() & rng.Uint64() & rng.Uint64() & rng.Uint64()
			starved := uint64(0xff) << (8 * ((now - start) / 100 % 5)) // for 100 ticks
			sequence := p.tick(func(now delta.Tick) {
				if (now-start)%100 == 1 {
					young = p.spawn()
					all |= young
				}
				for slot := range bitset.Slots(0, all) {
					p.slots.Touch(slot, now)
				}
			}, func() uint64 {
				p.FindLapsed(true)
				for slot := range bitset.Slots(0, all) {
					if at, ok := p.Acks.Holds(slot); ok && (now-1)%(64/8) == 0 { // it is the turn of block 0
						old := now-at > 64-64/16 && p.Acks.Lacks(p.Acks.Through, 0)>>slot&1 != 0
						require.Equal(t, old, p.Acks.lapsed[0].slots>>slot&1 != 0, "slot %d, held as of tick %d, in tick %d", slot, at, now)
					}
				}
				lapsed += bits.OnesCount64(p.Acks.lapsed[0].slots)
				if (now-start)%100 == 1 {
					return young // and not again for a while
				}
				return all & rare &^ starved &^ young
			})
			if (now-start)%100 == 1 {
				acks[now+20+delta.Tick(rng.IntN(40))] = []uint32{sequence}
			} else if rng.IntN(3) > 0 && (now-start)%500 > 80 {
				at := now + 1 + delta.Tick(rng.IntN(1+rng.IntN(1+rng.IntN(120))))
				acks[at] = append(acks[at], sequence)
			}
			p.Expire()
		}
	}
	require.Greater(t, lapsed, 100)
}
