package replication

import (
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/ackstate"
	"github.com/arche-replicate/arche-replicate/replication/internal/compact"
	"github.com/arche-replicate/arche-replicate/replication/internal/session"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
)

// TestFalseAcksHurtOnlyTheirSender: a client that acknowledges packets it never received lacks
// their entities until these change, or until the session ends. Other clients are not affected.
func TestFalseAcksHurtOnlyTheirSender(t *testing.T) {
	seed := seedOf(t)
	w := ecs.NewWorld()
	s := NewServer(&w, testSchema(), WithSeed(seed), withCoding(Compact), WithMTU(200))
	g := newGame(seed, &w, faceOf(s.schema), 60)
	o := newTruth()
	honest, liar := connect(s, seed, netsim.Config{Latency: 2}), connect(s, seed+1, netsim.Config{Latency: 1})
	for _, e := range []*end{honest, liar} {
		e.peer.conn.Compact = true
	}
	for range 20 {
		g.step()
		tickAll(t, s, o, []*end{honest, liar})
	}
	require.Equal(t, Compact, liar.client.Coding())
	hurt := false // while the client lacks anything
	for range 150 {
		g.step()
		tickAll(t, s, o, []*end{honest})
		liar.link.Step()
		liar.link.Down.Receive(func([]byte) {})
		for q := liar.peer.acked.Log.Oldest; q != liar.peer.acked.Log.Next; q++ {
			if sent := liar.peer.acked.Log.Find(q); sent != nil {
				liar.peer.acked.Acknowledge(sent, q)
			}
		}
		require.LessOrEqual(t, len(liar.peer.out.Packet.Compact.Kept.List), compact.MaxKept)
		hurt = hurt || liar.equalTo(s, o) != ""
	}
	require.True(t, hurt)
	liar.client.Reconnect()
	requireEqualSoon(t, s, o, []*end{honest, liar}, 100)
	require.Equal(t, Compact, liar.client.Coding())
	require.Zero(t, honest.client.Stats().MissingModels)
}

// TestForgottenModelsOfManyPackets: a client drops its models against the rules, in a world of many
// packets per tick. The server starts new models once it knows that the old ones are unusable.
func TestForgottenModelsOfManyPackets(t *testing.T) {
	oneGoroutine(t)
	x, entities, move := crowd(t, 300, withCoding(Compact), WithMTU(120))
	x.rounds(10)
	x.client.recv.Compact.Held = compact.ModelStore{}
	last := 0
	for i := range 300 {
		for j, e := range entities {
			move(e, float32((i+j)%5)-2)
		}
		before := x.client.Stats().MissingModels
		if x.round(); x.client.Stats().MissingModels > before {
			last = i
		}
	}
	t.Logf("the last packet of a model that was dropped came after %d ticks; %d were refused", last, x.client.Stats().MissingModels)
	require.Less(t, last, 200)
	x.rounds(5)
	x.requireEqual()
}

// TestCompactSessionsWrap: sessions whose sequences and ticks wrap, at every width, miss nothing.
func TestCompactSessionsWrap(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
	for _, c := range []struct {
		sequence uint16
		tick     uint32
		log      uint32
	}{{1<<16 - 40, 1<<16 - 60, 1<<16 - 300}, {0, 1<<32 - 60, 1<<32 - 300}, {7, 1<<31 - 60, 1<<31 - 300}} {
		seed := seedOf(t)
		w := ecs.NewWorld()
		s := NewServer(&w, testSchema(), WithSeed(seed), withCoding(Compact), WithMTU(150), replicationtest.FirstTick(c.tick), replicationtest.FirstSequence(c.sequence))
		g := newGame(seed, &w, faceOf(s.schema), 40)
		o := newTruth()
		e := connect(s, seed, netsim.Config{Latency: 2, Loss: 0.1, Duplicate: 0.1, Reorder: 0.1, ReorderBy: 3})
		e.peer.conn.Compact = true
		jumped := false
		for i := range 600 {
			g.step()
			tickAll(t, s, o, []*end{e})
			if i >= 20 && !jumped && e.peer.Connected() { // as if the session had gone on for a long time
				jumped = true
				p := e.peer
				p.acked.Log = ackstate.NewSentLog(c.log - session.SequenceGap)
				p.acked.Followed = p.acked.Log.Next
				e.client.Reconnect()
			}
		}
		require.Greater(t, e.peer.acked.Log.Next-c.log, uint32(300))
		require.Less(t, e.peer.acked.Log.Next-c.log, uint32(1<<16))
		require.Equal(t, Compact, e.client.Coding())
		require.Zero(t, e.client.Stats().MissingModels)
		e.link.SetConfig(netsim.Config{Latency: 1})
		requireEqualSoon(t, s, o, []*end{e}, 200)
	}
}
