package replication

import (
	"testing"

	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/replication/internal/receive"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// Failures that need an unlikely order of events.

// fillBulk fills the cells of an entity that is larger than a small packet, depending on v.
func fillBulk(x *fixture, e ecs.Entity, v uint64) {
	b := (*tBulk)(x.world.Get(e, ecs.ComponentID[tBulk](x.world)))
	for i := range b.Cells {
		b.Cells[i] = v * uint64(i+1) * 0x9e3779b97f4a7c15
	}
}

// TestHugePartSizesAreRefused: the number of parts must not overflow.
func TestHugePartSizesAreRefused(t *testing.T) {
	for _, size := range []uint64{1<<64 - 1, 1<<63 - 1, 1 << 63} {
		x := connectedWire(t, testSchema())
		p := x.forgeState(x.client.recv.Window.Newest+1, x.client.recv.NearTick+1, func(w *bitbuf.Writer) {
			beginEntries(w, wire.ListedSlot{Kind: wire.EntryPart})
			w.WriteExpGolomb(0, wire.PartOrder)
			w.WriteExpGolomb(4, wire.PartOrder)
			w.WriteExpGolomb(size, wire.PartOrder)
			w.WriteExpGolomb(0, wire.PartOrder)
			w.WriteBits(0, 32)
		})
		require.ErrorIs(t, x.client.Receive(p), wire.ErrMalformed, "size %x", size)
	}
}

// TestLatePartLeavesNewerOnesAlone: acknowledged parts are not sent again, so a part of an older
// state must not displace them.
func TestLatePartLeavesNewerOnesAlone(t *testing.T) {
	x := connectedWire(t, testSchema(), WithMTU(128))
	e := x.spawn(ecs.ComponentID[tBulk](x.world))
	fillBulk(x, e, 1)
	first := x.replicate()
	require.Greater(t, len(first), 3)
	late := first[0] // delayed
	x.deliver(first[1:]...)
	x.answer(x.apply()...)
	x.rounds(10) // resent, complete, shown
	x.requireEqual()
	fillBulk(x, e, 2)
	second := x.replicate()
	require.Greater(t, len(second), 3)
	x.deliver(second[:2]...) // acknowledged
	x.deliver(late)
	x.deliver(second[2:]...)
	x.answer(x.apply()...)
	x.rounds(50)
	x.requireEqual()
}

// TestStartedPartsAreFinished: a late ack makes the parts unnecessary for the server, but the
// client waits for them and has room for few.
func TestStartedPartsAreFinished(t *testing.T) {
	x := connectedWire(t, testSchema(), WithMTU(128))
	bulk := ecs.ComponentID[tBulk](x.world)
	var es []ecs.Entity
	for i := range receive.MaxAssemblies {
		e := x.spawn(bulk)
		fillBulk(x, e, uint64(i+1))
		es = append(es, e)
	}
	x.rounds(60)
	x.requireEqual()
	for _, e := range es {
		(*tBulk)(x.world.Get(e, bulk)).Cells[3]++
	}
	x.deliver(x.replicate()...) // small updates; they arrive
	held := x.apply()           // the ack is delayed
	for range 80 {
		packets := x.replicate()
		for i, p := range packets {
			if x.peer.acked.Large.Any() && i%(len(packets)/receive.MaxAssemblies) == 0 {
				x.deliver(p) // the first part of each; the others are lost
			}
		}
		x.apply() // acks are lost
		if len(x.client.recv.Parts) == receive.MaxAssemblies {
			break
		}
	}
	x.answer(held...)
	x.rounds(200)
	x.requireEqual("old ones")
	n := x.spawn(bulk)
	fillBulk(x, n, 77)
	x.rounds(300)
	x.requireEqual("new one")
}

// TestLateStateDoesNotReplaceABaseline: the two states have the same low tick bits.
func TestLateStateDoesNotReplaceABaseline(t *testing.T) {
	x := connectedWire(t, testSchema(), withoutSharedPackets)
	pos := ecs.ComponentID[tPosition](x.world)
	e := x.spawn(pos)
	p := func() *tPosition { return (*tPosition)(x.world.Get(e, pos)) }
	p().X = 10
	late := x.replicate() // delayed
	t0 := x.server.snap.Tick
	x.answer(x.apply()...)
	x.rounds(60) // marked lost, resent
	x.requireEqual()
	for x.server.snap.Tick != t0+255 {
		x.round()
	}
	p().X = 20
	x.round()
	require.Equal(t, t0+256, x.acked(x.slotOf(e)))
	x.rounds(300)
	x.requireEqual()
	p().X = 30
	x.deliver(x.replicate()...) // arrives
	x.apply()                   // the ack is lost
	x.deliver(late...)
	p().X = 31
	x.deliver(x.replicate()...)
	x.answer(x.apply()...)
	x.requireEqual()
}

// TestOldBaselinesStayOld: no ack arrives for longer than 16 bits of ticks.
func TestOldBaselinesStayOld(t *testing.T) {
	x, es, move := crowd(t, 1, withoutSharedPackets, neverSilent, WithTimeout(0))
	e := es[0]
	move(e, 1)
	x.round()
	a := x.server.snap.Tick
	require.Equal(t, a, x.acked(x.slotOf(e)))
	for x.server.snap.Tick != a+99 {
		x.round()
	}
	since := a + 100
	move(e, 1)
	taken := false
	for x.server.snap.Tick != since+65536+9 {
		d := x.replicate()
		if !taken && len(d) > 0 && x.server.snap.Tick-a > 256 && (x.server.snap.Tick-a)%256 == 0 {
			x.deliver(d...) // the only packet that arrives, with full states
			x.apply()
			taken = true
		}
	}
	require.True(t, taken)
	move(e, -5)
	x.deliver(x.replicate()...)
	x.apply()
	x.requireEqual()
}

// TestIdleWorldMovesAgain: no packet was sent in the meantime.
func TestIdleWorldMovesAgain(t *testing.T) {
	x, es, move := crowd(t, 3, WithTimeout(0))
	for range 9 {
		x.jump(1 << 28)
		x.rounds(snapshot.RefreshShare + 3)
	}
	x.requireEqual()
	move(es[0], 3)
	x.rounds(100)
	x.requireEqual()
}
