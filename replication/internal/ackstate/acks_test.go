package ackstate

import (
	"math/bits"
	"strings"
	"testing"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/baseline"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/stretchr/testify/require"
)

// touch notes a change of slots in the present tick.
func (p *trackedPeer) touch(slots uint64) func(now delta.Tick) {
	return func(now delta.Tick) {
		for slot := range bitset.Slots(0, slots) {
			p.slots.Touch(slot, now)
		}
	}
}

// sends returns a function that sends slots.
func sends(slots uint64) func() uint64 { return func() uint64 { return slots } }

// holds returns the tick as of which the peer holds the slot of a bit; 0 if it holds nothing of it.
func (p *trackedPeer) holds(bit uint64) delta.Tick {
	at, ok := p.Acks.Holds(bits.TrailingZeros64(bit))
	if !ok {
		return 0
	}
	return at
}

// newMovingPeer returns a peer that has acknowledged an entity, which changes in each of n ticks. The
// packets of these ticks are in flight; the first is of tick 2.
func newMovingPeer(n int) (p *trackedPeer, entity uint64, packets []uint32) {
	p = newTrackedPeer()
	p.acknowledge(p.tick(func(delta.Tick) { entity = p.spawn() }, func() uint64 { return entity }))
	for range n {
		packets = append(packets, p.tick(p.touch(entity), sends(entity)))
	}
	return p, entity, packets
}

// TestAnAckMeasuresTheRoundTrip from the tick of the packet to the next tick of the server.
func TestAnAckMeasuresTheRoundTrip(t *testing.T) {
	p, _, packets := newMovingPeer(5)
	p.Resolve(&wire.Ack{Sequence: packets[2], Count: 1, Words: [wire.MaxAckWords]uint32{1}})
	require.Equal(t, int32(8*3), p.Trip.Smooth, "sent in tick 4, acknowledged before tick 7")
}

func TestTheNewestAckRemains(t *testing.T) {
	p, _, packets := newMovingPeer(5)
	p.acknowledge(packets[3])
	p.acknowledge(packets[1])
	require.EqualValues(t, 5, p.Recent)
	require.Equal(t, packets[3], p.RecentSequence)
}

// TestATickIsKnownWhenItsPacketsAre: as long as a packet is in flight and nothing later arrived, it is
// not known what the peer holds as of its tick.
func TestATickIsKnownWhenItsPacketsAre(t *testing.T) {
	p, entity, packets := newMovingPeer(5)
	p.Follow()
	require.EqualValues(t, 1, p.Acks.Through)
	p.acknowledge(packets[0])
	p.acknowledge(packets[2])
	p.tick(p.touch(entity), sends(0))
	require.EqualValues(t, 4, p.Acks.Through, "the packet of tick 3 was overtaken, that of tick 5 is in flight")
	require.Zero(t, p.Acks.Lacks(2, 0)&entity)
	require.NotZero(t, p.Acks.Lacks(3, 0)&entity)
	require.Zero(t, p.Acks.Lacks(4, 0)&entity)
}

// TestTheLastFewPacketsAreNotWaitedFor: a tick is known once most of its packets have arrived, and those that are in
// flight were overtaken or are the last few. The peer is not known to hold what these carried, until they arrive. Where
// packets reorder, all are waited for.
func TestTheLastFewPacketsAreNotWaitedFor(t *testing.T) {
	for arrived, known := range map[string]bool{ // by packet of the tick
		"1": true, "0": false, "01": true, "10": false, "110": false, "1110": true, "0010": true, "11100": false,
		"1111100": false, "11111100": true, "11111000": false, "0000": false, "1000": false, "1111": true,
	} {
		for _, reorders := range []bool{false, true} {
			p, _, packets := newMovingPeer(2)
			p.acknowledge(packets[0])
			p.acknowledge(packets[1])
			if reorders {
				p.Trip.Late()
			}
			first := p.sendInPackets(len(arrived))
			for i, came := range arrived {
				if came == '1' {
					p.acknowledge(first + uint32(i))
				}
			}
			p.Follow()
			known := known && !(reorders && strings.Contains(arrived, "0"))
			require.Equal(t, known, p.Acks.Through == p.Snap.Tick, "%s, %v", arrived, reorders)
			for i, came := range arrived {
				if known {
					require.Equal(t, came != '1', p.Acks.Lacks(p.Snap.Tick, 0)>>(i+1)&1 != 0, "%s, packet %d", arrived, i)
				}
				p.acknowledge(first + uint32(i))
			}
			require.Equal(t, reorders || known && strings.Contains(arrived, "0"), p.Trip.Reorders(), "%s, %v", arrived, reorders)
			p.Follow()
			require.Equal(t, p.Snap.Tick, p.Acks.Through)
			require.Zero(t, p.Acks.Lacks(p.Snap.Tick, 0)&(1<<(len(arrived)+1)-1), arrived)
		}
	}
}

// TestPacketsReorderIfMoreAreLateThanLost: a packet that comes after its tick was passed counts three times as much as one
// that does not come. What happened long ago is forgotten.
func TestPacketsReorderIfMoreAreLateThanLost(t *testing.T) {
	p, _, packets := newMovingPeer(150)
	p.acknowledge(packets[100])
	p.Follow()
	lost := func(n int) {
		for range n {
			p.Lose(packets[0])
			packets = packets[1:]
		}
	}
	p.acknowledge(packets[60])
	require.True(t, p.Trip.Reorders())
	lost(2)
	require.True(t, p.Trip.Reorders())
	lost(1)
	require.False(t, p.Trip.Reorders())
	lost(40)
	for i := range 9 {
		require.False(t, p.Trip.Reorders(), "%d late", i)
		p.acknowledge(packets[20+i])
	}
	require.True(t, p.Trip.Reorders())
}

// sendInPackets plays a tick in which as many new entities as packets change, each of which is in a packet. It returns
// the first packet.
func (p *trackedPeer) sendInPackets(n int) (first uint32) {
	p.tick(func(delta.Tick) {
		for range n {
			p.spawn()
		}
	}, sends(0))
	first = p.tick(p.touch(1<<(n+1)-2), sends(2))
	for i := 1; i < n; i++ {
		p.Log.Add(p.Log.Begin(p.Snap.Tick), 0, 2<<i, baseline.RecordState)
		p.Log.Commit(p.Interval)
	}
	return first
}

// TestOnlyTheLatestStateIsClean: a state that counted as lost, and arrives, is no longer dirty, unless
// the slot has changed since.
func TestOnlyTheLatestStateIsClean(t *testing.T) {
	for _, late := range []bool{false, true} { // after what is known has gone past its tick
		p, entity, packets := newMovingPeer(1)
		other := uint64(0)
		p.tick(func(delta.Tick) { other = p.spawn() }, func() uint64 { return other })
		next := p.tick(p.touch(other), sends(0)) // changes, and is not sent
		p.Lose(packets[0])
		p.Lose(packets[0] + 1)
		require.Equal(t, entity, p.Dirty[0]&entity)
		p.MarkDirty(0, other)
		if late {
			p.acknowledge(next)
			p.Follow()
			require.EqualValues(t, 4, p.Acks.Through)
		}
		p.acknowledge(packets[0])
		p.acknowledge(packets[0] + 1)
		p.Follow()
		require.Equal(t, other, p.Dirty[0], "late: %v", late)
		require.Equal(t, p.Acks.Through, p.holds(entity))
		require.EqualValues(t, 3, p.holds(other))
	}
}

// TestLateStatesLeaveNewerOnesDirty: a state arrives that was the latest up to the tick to which all is
// known, but no longer.
func TestLateStatesLeaveNewerOnesDirty(t *testing.T) {
	p, entity, packets := newMovingPeer(1)
	p.Lose(packets[0])
	p.acknowledge(p.tick(func(delta.Tick) {}, sends(0)))
	p.tick(p.touch(entity), sends(0))
	require.EqualValues(t, 3, p.Acks.Through)
	p.acknowledge(packets[0])
	require.EqualValues(t, 3, p.holds(entity))
	require.Equal(t, entity, p.Dirty[0], "what changed in tick 4 was not sent")
}

// TestLatePacketsCount: a packet that counted as lost shows what the peer holds.
func TestLatePacketsCount(t *testing.T) {
	p, entity, packets := newMovingPeer(5)
	p.acknowledge(packets[4])
	p.tick(func(delta.Tick) {}, sends(0))
	require.EqualValues(t, 6, p.Acks.Through)
	require.NotZero(t, p.Acks.Lacks(4, 0)&entity)
	p.acknowledge(packets[2])
	require.EqualValues(t, 6, p.holds(entity))

	p, entity, packets = newMovingPeer(5)
	empty := p.tick(func(delta.Tick) {}, sends(0))
	p.acknowledge(empty)
	p.tick(func(delta.Tick) {}, sends(0))
	require.EqualValues(t, 1, p.holds(entity), "the packets of five ticks count as lost")
	p.acknowledge(packets[2])
	require.EqualValues(t, 4, p.holds(entity))
}

// TestOvertakenPacketsAreLost, long before the timeout.
func TestOvertakenPacketsAreLost(t *testing.T) {
	p, entity, packets := newMovingPeer(5)
	slack := int(p.Trip.Slack())
	p.acknowledge(packets[slack])
	p.Expire()
	require.Zero(t, p.Dirty[0], "it may arrive yet")
	p.acknowledge(packets[slack+1])
	p.Expire()
	require.Equal(t, SentLost, p.Log.Find(packets[0]).Status)
	require.Equal(t, SentInFlight, p.Log.Find(packets[1]).Status)
	require.Zero(t, p.Dirty[0]&entity, "a newer state is in flight")
}

// TestWhatWasLostIsSentAgain, if it is still the latest state.
func TestWhatWasLostIsSentAgain(t *testing.T) {
	p, entity, packets := newMovingPeer(2)
	p.Lose(packets[0])
	require.Zero(t, p.Dirty[0], "it has changed since then")
	p.Lose(packets[1])
	require.Equal(t, entity, p.Dirty[0])

	p, entity, packets = newMovingPeer(1)
	slot := bits.TrailingZeros64(entity)
	p.tick(func(now delta.Tick) { p.slots.Remove(slot, now) }, sends(0))
	despawn := p.Log.Begin(p.Snap.Tick)
	p.Log.Add(despawn, 0, entity, baseline.RecordDespawn)
	p.Dirty[0] = 0
	sequence := p.Log.Commit(p.Interval)
	p.Lose(packets[0])
	require.Zero(t, p.Dirty[0], "the entity has ended")
	p.Lose(sequence)
	require.Equal(t, entity, p.Dirty[0])
}

// TestWhatChangesNowIsDirtyWhenItsPacketIsLost: the peer holds the state before, but not the one of
// this tick, which was captured already.
func TestWhatChangesNowIsDirtyWhenItsPacketIsLost(t *testing.T) {
	p, entity, packets := newMovingPeer(1)
	p.acknowledge(packets[0])
	p.tick(p.touch(entity), func() uint64 {
		p.Dirty[0] = 0
		sent := p.Log.Begin(p.Snap.Tick)
		p.Log.Add(sent, 0, entity, baseline.RecordState)
		p.Lose(p.Log.Commit(p.Interval))
		require.Equal(t, entity, p.Dirty[0])
		return 0
	})
}

// TestReportsOfOldMissingBaselinesAreIgnored: the client has received a newer state since then.
func TestReportsOfOldMissingBaselinesAreIgnored(t *testing.T) {
	p, entity, packets := newMovingPeer(3)
	for _, q := range packets {
		p.acknowledge(q)
	}
	slot := uint32(bits.TrailingZeros64(entity))
	p.forget(wire.MissingBaseline{Slot: slot, Low: 3})
	require.NotZero(t, p.holds(entity))
	require.Zero(t, p.Dirty[0])
	p.forget(wire.MissingBaseline{Slot: slot, Low: 4})
	require.Zero(t, p.holds(entity))
	require.Equal(t, entity, p.Dirty[0])
}

// TestOnlyWhatWasShownHasToEnd: where the history of a slot ends, the client may show an earlier
// entity only if it was sent one.
func TestOnlyWhatWasShownHasToEnd(t *testing.T) {
	p := newTrackedPeer()
	var shown, unsent uint64
	p.tick(func(delta.Tick) { shown, unsent = p.spawn(), p.spawn() }, func() uint64 { return shown })
	p.NoteChurn(0, shown|unsent)
	require.Equal(t, shown, p.Acks.Ended[0])
}

// TestANewIntervalForgetsWhatThePacketsOfTheOldOneHad.
func TestANewIntervalForgetsWhatThePacketsOfTheOldOneHad(t *testing.T) {
	p, _, _ := newMovingPeer(1)
	p.exact, p.ended = 1<<2, 2
	p.SetInterval(1)
	p.TakeInterval()
	require.True(t, p.sentExactly(2))
	p.SetInterval(3)
	require.True(t, p.sentExactly(2), "not before the next tick")
	p.TakeInterval()
	require.False(t, p.sentExactly(2))
	require.Zero(t, p.exact)
}

// TestSharedPacketsHaveToArrive before their tick counts as one in which nothing is missing.
func TestSharedPacketsHaveToArrive(t *testing.T) {
	for _, arrives := range []bool{false, true} {
		for _, shared := range []bool{false, true} {
			p, entity, packets := newMovingPeer(1)
			p.exact, p.ended = 1<<2, 2
			sent := p.Log.Find(packets[0])
			if shared {
				r := p.Log.Record(sent, 0)
				sent.shared = &baseline.SharedRecords{List: []baseline.SentRecord{baseline.NewRecord(int(r.Block), r.Mask, r.Kind)}}
			}
			if arrives {
				p.acknowledge(packets[0])
			}
			p.acknowledge(p.tick(func(delta.Tick) {}, sends(0)))
			p.Follow()
			require.EqualValues(t, 3, p.Acks.Through)
			require.Equal(t, arrives, p.Acks.Lacks(2, 0)&entity == 0, "shared: %v", shared)
		}
	}
}
