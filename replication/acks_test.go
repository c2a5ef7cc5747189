package replication

import (
	"bytes"
	"testing"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/stretchr/testify/require"
)

// TestALateAckDoesNotMoveTheBaselineBack: a late ack of an older state does not replace a newer
// state that has long been the baseline. The client keeps old states only for a while.
func TestALateAckDoesNotMoveTheBaselineBack(t *testing.T) {
	x, e, move := crowd(t, 1, withoutSharedPackets)
	move(e[0], 1)
	late := x.replicate()
	move(e[0], 1)
	x.rounds(snapshot.RecentTicks + 5)
	baseline, acked := x.acked(0), x.peer.Stats().Acked
	x.deliver(late...)
	x.answer(x.apply()...)
	require.Greater(t, x.peer.Stats().Acked, acked)
	require.Equal(t, baseline, x.acked(0))
}

// TestABaselineIsUsedForOneWindow: a baseline is used for at most one window, however long it was
// the newest state. Once a newer state may have arrived, the client may drop the old one.
func TestABaselineIsUsedForOneWindow(t *testing.T) {
	for _, changes := range []int{1, 1000} {
		for _, rest := range []int{0, snapshot.RecentTicks + 5, 300} {
			x, e, move := crowd(t, 1, withoutSharedPackets)
			x.rounds(rest)
			baseline, first, window := x.acked(0), x.server.snap.Tick+1, delta.Tick(x.server.opts.Window)
			updates, wholes := 0, 0
			for i := range int(3 * window) {
				if i < changes {
					move(e[0], 0.3)
				}
				before := x.peer.Stats()
				x.deliver(x.replicate()...)
				x.apply() // the acks are lost
				now := x.peer.Stats()
				switch tick := x.server.snap.Tick; {
				case tick-first > window:
					require.Equal(t, before.Updates, now.Updates, "%d changes, rest of %d, %d ticks later", changes, rest, tick-first)
					wholes += int(now.FullStates - before.FullStates)
				case tick-baseline <= window || rest > 0 && tick-first < window:
					require.Equal(t, before.FullStates, now.FullStates, "%d changes, rest of %d, %d ticks later", changes, rest, tick-first)
					updates += int(now.Updates - before.Updates)
				}
			}
			require.NotZero(t, updates)
			require.NotZero(t, wholes)
			require.Zero(t, x.client.Stats().MissingBaselines)
		}
	}
}

// TestAcksOfLostPacketsWithinATick: a transport that delivers packets immediately may return the
// ack of a packet marked lost while Replicate still sends packets that take its place in the log.
func TestAcksOfLostPacketsWithinATick(t *testing.T) {
	x, entities, move := crowd(t, 500, WithMTU(100), withoutSharedPackets)
	moveAll := func() {
		for i, e := range entities {
			move(e, float32(i%5+1)/8)
		}
	}
	moveAll()
	packets := x.replicate()
	x.deliver(packets[0])
	late := x.apply()
	sequence := x.peer.acked.Log.Next - uint32(len(packets))
	for i := 0; int32(sequence-x.peer.acked.Log.Oldest) >= 0; i++ {
		x.replicate() // all packets are lost
		require.Less(t, i, 200)
	}
	require.NotNil(t, x.peer.acked.Log.Find(sequence))
	var got [][]byte
	x.peer.out.Send = func(p []byte) error {
		if got == nil {
			x.answer(late...)
		}
		got = append(got, bytes.Clone(p))
		return nil
	}
	acked := x.peer.Stats().Acked
	for i := 0; x.peer.acked.Log.Find(sequence) != nil; i++ {
		moveAll()
		x.server.Replicate()
		require.Less(t, i, 20)
	}
	require.Greater(t, x.peer.Stats().Acked, acked)
	x.server.Replicate()
	for slot := range entities {
		require.NotNil(t, x.client.recv.Replicas.At(uint32(slot)).Held.At(x.acked(slot)), "slot %d: the client holds what it acknowledged", slot)
	}
}

// TestReportsAboutEarlierBaselinesAreIgnored: a client that reported a missing baseline may have
// received a newer state in the meantime. One packet may carry both the report and the ack.
func TestReportsAboutEarlierBaselinesAreIgnored(t *testing.T) {
	x, e, move := crowd(t, 1, withoutSharedPackets)
	former := x.acked(0)
	move(e[0], 1)
	x.deliver(x.replicate()...)
	x.apply() // the test builds the ack by hand
	a := wire.Ack{Sequence: x.peer.acked.Log.Next - 1, Count: 1, Lacks: 1}
	a.Words[0], a.Missing[0] = 1, wire.MissingBaseline{Slot: 0, Low: uint32(former) & delta.MaxAge}
	for range 2 {
		x.answer(forgeAck(x.client, &a))
		require.Equal(t, x.server.snap.Tick, x.acked(0))
		require.Zero(t, x.peer.Stats().MissingBaselines)
	}
	a.Missing[0].Low = uint32(x.server.snap.Tick) & delta.MaxAge
	x.answer(forgeAck(x.client, &a))
	require.EqualValues(t, 1, x.peer.Stats().MissingBaselines)
	require.Zero(t, x.acked(0))
	require.NotEmpty(t, x.replicate(), "the full state is sent")
}
