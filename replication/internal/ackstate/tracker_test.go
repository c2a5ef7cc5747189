package ackstate

import (
	"math/bits"
	"slices"
	"testing"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/baseline"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/arche-replicate/arche-replicate/replication/internal/counters"
	"github.com/arche-replicate/arche-replicate/replication/internal/interest"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// A trackedPeer is a peer of a server without a world, whose slots are all in the first block.
type trackedPeer struct {
	Tracker
	slots *snapshot.SlotTable
	sight interest.Sight
}

// Timed, Arrived and Lost make it the receiver of the outcome of its packets.
func (p *trackedPeer) Timed(*SentPacket)           {}
func (p *trackedPeer) Arrived(*SentPacket, uint32) {}
func (p *trackedPeer) Lost(uint32)                 {}

func newTrackedPeer() *trackedPeer {
	snap := &snapshot.Snapshot{Opts: &config.ServerOptions{Grid: 1, Window: 64}}
	snap.Slots.InitClasses(0, 0)
	p := &trackedPeer{slots: &snap.Slots}
	p.Init(snap, &interest.Shared{}, &p.sight, &counters.PeerCounters{}, p)
	p.Begin(0, false, false)
	return p
}

// spawn adds an entity in the present tick and returns the bit of its slot.
func (p *trackedPeer) spawn() uint64 { return 1 << p.slots.Add(ecs.Entity{}, p.Snap.Tick) }

// tick plays a tick, in which the world changes and then the peer is sent some slots. It returns the
// packet.
func (p *trackedPeer) tick(change func(now delta.Tick), send func() (slots uint64)) (sequence uint32) {
	p.Snap.Tick++
	p.slots.Begin(p.Snap.Tick)
	p.slots.Reclaim(p.Snap.Tick)
	change(p.Snap.Tick)
	p.slots.List()
	p.Grow()
	p.Follow()
	p.NoteAllChurn()
	sent := send()
	packet := p.Log.Begin(p.Snap.Tick)
	p.Log.Add(packet, 0, sent, baseline.RecordState)
	p.Dirty[0] &^= sent
	p.Acks.Shown[0] |= sent
	p.slots.Settle(p.Snap.Tick)
	return p.Log.Commit(p.Interval)
}

// acknowledge is the arrival of an ack.
func (p *trackedPeer) acknowledge(sequence uint32) { p.Acknowledge(p.Log.Find(sequence), sequence) }

// TestWhatThePeerWasSentIsDespawned: an entity that ends is dirty if the peer may show it. One that
// ends before the peer was sent it needs no despawn.
func TestWhatThePeerWasSentIsDespawned(t *testing.T) {
	p := newTrackedPeer()
	var shown, unsent uint64
	p.tick(func(delta.Tick) { shown, unsent = p.spawn(), p.spawn() }, func() uint64 {
		require.Equal(t, shown|unsent, p.Dirty[0])
		return shown
	})
	p.tick(func(now delta.Tick) {
		for slot := range bitset.Slots(0, shown|unsent) {
			p.slots.Remove(slot, now)
		}
	}, func() uint64 {
		live, gone := p.Split(0, p.Dirty[0])
		require.Zero(t, live)
		require.Equal(t, shown, gone)
		return 0
	})
}

// TestWhatWentOutOfViewIsDespawned, though it lives on.
func TestWhatWentOutOfViewIsDespawned(t *testing.T) {
	p := newTrackedPeer()
	var seen, hidden, unsent uint64
	nothing := func(delta.Tick) {}
	p.tick(func(delta.Tick) { seen, hidden, unsent = p.spawn(), p.spawn(), p.spawn() }, func() uint64 { return seen | hidden })
	p.sight.View.InView = bitset.Set{seen}
	p.tick(nothing, func() uint64 {
		live, gone := p.Split(0, seen|hidden|unsent)
		require.Equal(t, seen, live)
		require.Equal(t, hidden, gone)
		return 0
	})
}

// TestUpdatesAreTakenAgainstWhatThePeerHolds: what it holds nothing of is sent in full, and a baseline
// is a tick as of which it holds the slot.
func TestUpdatesAreTakenAgainstWhatThePeerHolds(t *testing.T) {
	p := newTrackedPeer()
	var held, lost, later uint64
	p.tick(func(delta.Tick) { held, lost, later = p.spawn(), p.spawn(), p.spawn() }, func() uint64 { return held | lost | later })
	touch := func(now delta.Tick) {
		for slot := range bitset.Slots(0, held|lost|later) {
			p.slots.Touch(slot, now)
		}
	}
	for p.Snap.Tick < 9 {
		p.acknowledge(p.tick(touch, func() uint64 { return held }))
	}
	p.acknowledge(p.tick(touch, func() uint64 { return held | later }))
	p.tick(touch, func() uint64 {
		p.ChooseLikely()
		of := p.Likely
		require.EqualValues(t, 10, of.Base)
		require.Equal(t, lost, p.LackOf(snapshot.BasePair{Base: of.Base, Second: of.Base}, 0)&(held|lost|later))
		require.Equal(t, lost|later, p.LackOf(of, 0)&(held|lost|later))
		p.Classify(0, held|lost|later, p.Old(0, held|lost|later))
		for _, c := range p.Classes.List {
			switch {
			case c.Full:
				require.Equal(t, lost, c.Mask)
			case c.Mask&held != 0:
				require.Equal(t, delta.Baselines{A1: of.Base, A2: of.Second, Two: true}, c.Baselines)
			default:
				require.Equal(t, delta.Baselines{A1: of.Base}, c.Baselines)
			}
		}
		all := uint64(0)
		for _, c := range p.Classes.List {
			require.Zero(t, all&c.Mask, "a slot has one class")
			all |= c.Mask
		}
		require.Equal(t, held|lost|later, all)
		return 0
	})
}

// TestCompactKeepsTheNewestBaseline: of the coding Compact, the first baseline is the newest tick as of
// which the peer holds a slot, though it does not hold ticks before that. Other ones take their place.
func TestCompactKeepsTheNewestBaseline(t *testing.T) {
	for _, c := range []struct {
		lost          []delta.Tick
		second        delta.Tick
		third, fourth uint8
	}{
		{lost: nil, second: 2, third: 2, fourth: 4},
		{lost: []delta.Tick{8}, second: 2, third: 3, fourth: 4},
		{lost: []delta.Tick{7, 8}, second: 2, third: 1, fourth: 4},
		{lost: []delta.Tick{7, 8, 9}, second: 2, third: 4, fourth: 5},
		{lost: []delta.Tick{2, 4, 5, 6, 8}, second: 1, third: 3},
	} {
		p := newTrackedPeer()
		p.Classes.Compact = true
		var slot uint64
		p.acknowledge(p.tick(func(delta.Tick) { slot = p.spawn() }, func() uint64 { return slot }))
		touch := func(now delta.Tick) { p.slots.Touch(bits.TrailingZeros64(slot), now) }
		for p.Snap.Tick < 10 {
			if packet := p.tick(touch, func() uint64 { return slot }); !slices.Contains(c.lost, p.Snap.Tick) {
				p.acknowledge(packet)
			}
		}
		p.tick(touch, func() uint64 {
			p.ChooseLikely()
			p.FindPairs()
			p.Classify(0, slot, p.Old(0, slot))
			require.Equal(t, []baseline.Class{{
				Mask: slot, Baselines: delta.Baselines{A1: 10, A2: c.second, Two: true}, Third: c.third, Fourth: c.fourth,
			}}, p.Classes.List, "without ticks %v", c.lost)
			return 0
		})
	}
}

// TestWhatIsLackingOfSharedPackets: slots that lack a baseline, but for those whose component set has changed since,
// which are in no shared packets. A change between the baselines does not count.
func TestWhatIsLackingOfSharedPackets(t *testing.T) {
	p := newTrackedPeer()
	var held, lost, changed uint64
	p.tick(func(delta.Tick) { held, lost, changed = p.spawn(), p.spawn(), p.spawn() }, func() uint64 { return held | lost | changed })
	for p.Snap.Tick < 10 {
		p.acknowledge(p.tick(p.touch(held|lost|changed), sends(held)))
	}
	p.tick(p.touch(held|lost|changed), func() uint64 {
		p.ChooseLikely()
		of, all := p.Likely, wire.SlotRange{From: 0, To: 64}
		require.True(t, of.Base.After(of.Second))
		p.slots.Info[bits.TrailingZeros64(lost)].SetChanged = of.Base
		p.slots.Info[bits.TrailingZeros64(changed)].SetChanged = of.Base + 1
		p.slots.List()
		p.slots.Periods.Find(1, p.slots)
		p.Period = p.slots.Periods.Get(1)
		lacking, wanted := p.LackIn(all, of, nil)
		require.Equal(t, [2]int{1, 3}, [2]int{lacking, wanted})
		lacking, wanted = p.LackIn(all, of, Gaps{{From: 0, To: 64}})
		require.Equal(t, [2]int{3, 3}, [2]int{lacking, wanted}, "in a gap")
		lacking, wanted = p.LackIn(wire.SlotRange{From: 64, To: 128}, of, nil)
		require.Equal(t, [2]int{0, 0}, [2]int{lacking, wanted})
		return 0
	})
}
