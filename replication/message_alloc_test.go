package replication

import (
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// TestMessagesDoNotAllocate: once all buffers have grown, ticks with component changes, messages of
// all kinds both ways, some of them lost, and inputs allocate nothing.
func TestMessagesDoNotAllocate(t *testing.T) {
	skipAllocationTest(t)
	x := newReusingLink(t, messageSchema())
	world, s, peer, client := x.world, x.server, x.peer, x.client
	hits, handled := 0, 0
	OnServerMessage(client, func(mHit) { hits++ })
	OnServerMessage(client, func(mChat) {})
	OnServerMessage(client, func(mSpark) {})
	OnClientMessage(s, func(p *Peer, m mHit) {
		handled++
		if SendToClient(p, m) != nil {
			t.Fatal("no room")
		}
	})
	health, frozen, marker := ecs.ComponentID[tHealth](world), ecs.ComponentID[tFrozen](world), ReplicatedID(world)
	component := []ecs.ID{frozen}
	var all []ecs.Entity
	for range 20 {
		all = append(all, world.NewEntity(marker, health))
	}
	tick, commands := 0, 0
	round := func() {
		tick++
		e := all[tick%len(all)]
		if world.Has(e, frozen) { // gives messages something to wait for
			world.Remove(e, component...)
		} else {
			world.Add(e, component...)
		}
		if in, ok := Input[mMove](peer, s.Tick()+1); ok && in.Fire {
			commands++
		}
		_ = SendToClient(peer, mHit{Number: uint32(tick)})
		_ = SendToAll(s, mChat{})
		_ = SendToViewers(s, e, mSpark{})
		s.Replicate()
		for i, p := range x.down {
			if (tick+i)%7 != 0 {
				_ = client.Receive(p)
			}
		}
		x.down = x.down[:0]
		_ = SetInput(client, client.InputTick(), mMove{Fire: true, Stamp: uint16(tick)})
		_ = SendToServer(client, mHit{})
		_ = SendToServer(client, mFlash{})
		x.apply()
		for i, p := range x.up {
			if (tick+i)%5 != 0 {
				_ = peer.Receive(p)
			}
		}
		x.up = x.up[:0]
	}
	for range 3000 {
		round()
	}
	hits, handled, commands = 0, 0, 0
	const runs = 1000
	allocs := testing.AllocsPerRun(runs, round)
	require.Greater(t, hits, 2*runs*9/10)
	require.Greater(t, handled, runs*9/10)
	require.Greater(t, commands, runs*9/10)
	require.Zero(t, allocs)
	require.NotZero(t, peer.Stats().MessagesResent)
}
