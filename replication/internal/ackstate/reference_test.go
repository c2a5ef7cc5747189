package ackstate

import (
	"math/rand/v2"
	"testing"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/baseline"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/stretchr/testify/require"
)

// TestGapsAreTheBlocksOfLostPackets: slots can refer to all other ranges, and to none if every packet got lost. Packets
// that are apart or empty do not count.
func TestGapsAreTheBlocksOfLostPackets(t *testing.T) {
	const base = delta.Tick(40)
	l := NewSentLog(1)
	send := func(tick delta.Tick, status SentStatus, apart bool, blocks ...int) {
		p := l.Begin(tick)
		for _, b := range blocks {
			l.Add(p, b, 1<<7, baseline.RecordState)
		}
		l.Commit(1)
		p.Status, p.Apart = status, apart
	}
	send(base-1, SentLost, false, 0, 9)
	send(base, SentAcked, false, 0, 1)
	send(base, SentLost, false, 2, 3)
	send(base, SentLost, true, 0, 9)
	send(base, SentLost, false)
	send(base, SentAcked, false, 4)
	send(base, SentInFlight, false, 6)
	send(base+1, SentLost, false, 0, 9)

	first, end, known := l.packetsOf(base, l.Next)
	require.True(t, known)
	require.Equal(t, [2]uint32{2, 8}, [2]uint32{first, end})
	gaps, ok := l.findGaps(base, l.Next)
	require.True(t, ok)
	require.Equal(t, Gaps{{From: 2 * 64, To: 4 * 64}, {From: 6 * 64, To: 7 * 64}}, gaps)
	for _, c := range []struct {
		from, to int
		refers   bool
	}{
		{0, 128, true},
		{0, 129, false},
		{191, 192, false},
		{255, 300, false},
		{256, 384, true},
		{447, 448, false},
		{448, 1 << 30, true},
		{0, 1 << 30, false},
	} {
		require.Equal(t, !c.refers, gaps.touch(wire.SlotRange{From: c.from, To: c.to}), "slots %d to %d", c.from, c.to)
	}
	_, ok = l.findGaps(base+1, l.Next)
	require.False(t, ok, "all packets got lost")
	_, ok = l.findGaps(base-2, l.Next)
	require.False(t, ok, "it is forgotten")
	send(base+2, SentLost, false, 5)
	l.Add(l.Begin(base+2), 6, 1, baseline.RecordDespawn)
	l.At(l.Commit(1)).Status = SentAcked
	_, ok = l.findGaps(base+2, l.Next)
	require.False(t, ok, "the client has no slots of that tick")
	require.True(t, l.anyGap(first, end))
	require.False(t, l.anyGap(first+2, first+5))
}

// TestTheOpenPacketIsNotAnOldOne: the place of a packet that is open was that of the oldest one that the log remembered. Those
// of its tick are not all known.
func TestTheOpenPacketIsNotAnOldOne(t *testing.T) {
	l := NewSentLog(0)
	send := func(tick delta.Tick, packets int) {
		for range packets {
			p := l.Begin(tick)
			l.Add(p, int(l.Next), 1, baseline.RecordState)
			p.Status = SentAcked
			l.Commit(1)
		}
		l.trim(l.Next)
	}
	send(10, 10)
	send(11, 13)
	send(12, minSentPackets-23)
	require.Len(t, l.Ring, minSentPackets)
	first, end, known := l.packetsOf(11, l.Next)
	require.Equal(t, []any{uint32(10), uint32(23), true}, []any{first, end, known})
	for sent := uint32(1); sent < 14; sent++ {
		l.Begin(13)
		_, _, known := l.packetsOf(10, l.Next)
		require.False(t, known, "%d packets of tick 10 are forgotten, and one is open", sent-1)
		first, _, known := l.packetsOf(11, l.Next)
		require.Equal(t, sent < 10, known, "%d packets are forgotten, and one is open", sent-1)
		require.Equal(t, max(10, sent), first)
		l.At(l.Next).Status = SentAcked
		l.Commit(1)
		l.trim(l.Next)
	}
}

// TestATickThatDidNotEndIsNotSentExactly: a send function panics after a packet with one of two slots that changed. The
// packet arrives before the next tick, whose reference has that slot only.
func TestATickThatDidNotEndIsNotSentExactly(t *testing.T) {
	p := newTrackedPeer()
	var first, both uint64
	p.acknowledge(p.tick(func(delta.Tick) { first = p.spawn(); both = first | p.spawn() }, func() uint64 { return both }))
	begin := func() {
		p.Snap.Tick++
		p.slots.Begin(p.Snap.Tick)
		p.touch(both)(p.Snap.Tick)
		p.slots.List()
		p.slots.Periods.Find(1, p.slots)
		p.Grow()
		p.Follow()
		p.FindPeriod()
		p.ChooseLikely()
		p.NoteAllChurn()
	}
	send := func(slots uint64) uint32 {
		p.Log.Add(p.Log.Begin(p.Snap.Tick), 0, slots, baseline.RecordState)
		return p.Log.Commit(p.Interval)
	}
	for range 2 * snapshot.RecentTicks {
		begin()
		packet := send(both)
		p.EndPackets(false, true)
		p.slots.Settle(p.Snap.Tick)
		p.acknowledge(packet)
	}
	require.NotZero(t, p.exact)
	begin()
	packet := send(first)
	p.slots.Settle(p.Snap.Tick)
	p.acknowledge(packet)
	begin()
	require.Equal(t, p.Snap.Tick-1, p.Front().A1)
	require.Equal(t, first, p.Reference(nil, p.Front().A1)[0].Mask)
}

// TestTicksWithoutGapsAreKnownWithoutTheLog: those all packets of which arrived in time are, and no tick with a packet
// that got lost or came late. Where the log knows their packets, it has no gaps either.
func TestTicksWithoutGapsAreKnownWithoutTheLog(t *testing.T) {
	rng, compared := rand.New(rand.NewPCG(replicationtest.Seed(t), 0)), 0
	for range 20 {
		p := newTrackedPeer()
		p.tick(func(delta.Tick) { p.spawn() }, func() uint64 { return 1 })
		acks := map[delta.Tick][]uint32{} // sequences, by when the ack arrives
		arrived := map[delta.Tick]bool{}
		loss := rng.Float64() * rng.Float64()
		for p.Snap.Tick < 400 {
			now := p.Snap.Tick + 1
			for _, sequence := range acks[now] {
				if sent := p.Log.Find(sequence); sent != nil {
					arrived[sent.Tick] = arrived[sent.Tick] || sent.Tick.After(p.Acks.Through)
					p.acknowledge(sequence)
				}
			}
			through := p.Acks.Through
			sequence := p.tick(func(now delta.Tick) { p.slots.Touch(0, now) }, func() uint64 {
				for at := max(through+1, 3); !at.After(p.Acks.Through); at++ {
					require.Equal(t, arrived[at], p.isGapless(at), "tick %d, all of which is known", at)
				}
				for at := max(now, snapshot.RecentTicks+2) - snapshot.RecentTicks; at != now+1; at++ {
					if !p.isGapless(at) {
						continue
					}
					require.True(t, arrived[at], "tick %d has no gap", at)
					if _, _, known := p.Log.packetsOf(at, p.Followed); known {
						gaps, ok := p.Log.findGaps(at, p.Followed)
						require.True(t, ok && len(gaps) == 0)
						compared++
					}
				}
				p.Expire()
				p.ChooseLikely()
				return 1
			})
			if rng.Float64() >= loss {
				at := now + 3 + delta.Tick(rng.IntN(3))
				acks[at] = append(acks[at], sequence)
			}
			p.EndPackets(true, true)
		}
	}
	require.Greater(t, compared, 1000)
}
