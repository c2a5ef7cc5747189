package interpolation_test

import (
	"testing"
	"time"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/interpolation"
)

type explosion struct {
	Target ecs.Entity
	Number uint32
}

type whistle struct{ Number uint32 }

// newMessageGame returns a game in which the server sends a message in every third tick, of two types in turns.
func newMessageGame(t *testing.T, p profile) (g *game, sent map[uint32]uint32) {
	t.Helper()
	g = &game{t: t, rand: newRand(t), profile: p, rate: 20, frames: 144, wobble: 0.1}
	g.prepare(1, func() {
		replication.RegisterMessage[explosion](g.schema)
		replication.RegisterMessage[whistle](g.schema)
	})
	e := g.spawn(place{})
	sent = map[uint32]uint32{}
	g.onTick = func(n int) {
		g.place(e).X = float32(n % 100)
		if n%3 != 0 || !g.peer.Connected() {
			return
		}
		number := uint32(len(sent))
		sent[number] = uint32(g.server.Tick() + 1)
		if number%2 == 0 {
			require.NoError(t, replication.SendToClient(g.peer, explosion{e, number}))
		} else {
			require.NoError(t, replication.SendToClient(g.peer, whistle{number}))
		}
	}
	return g, sent
}

// TestMessagesComeWhenTheirTickIsShown: neither before nor, unless they came late, after that, and in their order.
func TestMessagesComeWhenTheirTickIsShown(t *testing.T) {
	g, sent := newMessageGame(t, profileB)
	v := newView(g)
	var next, late uint32
	took := func(number uint32) {
		require.Equal(t, next, number)
		require.EqualValues(t, sent[number], g.client.MessageTick())
		next++
		at, ok := v.Time()
		tick := uint32(at.Tick)
		require.True(t, ok)
		behind := int32(tick - sent[number])
		require.GreaterOrEqual(t, behind, int32(0), "not shown yet")
		if behind > 0 {
			late++
		}
	}
	replication.OnServerMessage(g.client, func(m explosion) {
		require.True(t, g.local.Alive(m.Target))
		require.NotNil(t, g.local.Get(m.Target, g.at.place), "it may ask the world")
		took(m.Number)
	})
	replication.OnServerMessage(g.client, func(m whistle) { took(m.Number) })
	g.run(60)
	require.Greater(t, next, uint32(380))
	require.Greater(t, int(next)+10, len(sent))
	require.Less(t, late, next/10, "most are in time")
}

// TestMessagesComeWithTheirState: with a send interval, a message comes when the state of the same moment is
// shown, not some ticks before.
func TestMessagesComeWithTheirState(t *testing.T) {
	for interval := 1; interval <= 5; interval++ {
		g, _ := newMessageGame(t, profile{oneWay: 0.05, jitter: 0.005})
		e := g.spawn(place{})
		g.world.Add(e, g.ids.health)
		g.onTick = func(n int) {
			g.place(e).X = float32(n % 100)
			if n == 20 {
				g.peer.SetSendInterval(interval) // so that no tick before is on its grid, except by chance
			}
			if n%7 == 0 && n > 30 && g.peer.Connected() {
				hp := (*health)(g.world.Get(e, g.ids.health))
				hp.HP++
				require.NoError(t, replication.SendToClient(g.peer, explosion{e, uint32(hp.HP)}))
			}
		}
		v := newView(g)
		handled, late := 0, 0
		replication.OnServerMessage(g.client, func(m explosion) {
			at, _ := v.Time()
			require.EqualValues(t, m.Number, (*health)(g.local.Get(m.Target, g.at.health)).HP, "interval %d", interval)
			if handled++; at.Tick.Sub(g.client.MessageTick()) >= interval {
				late++
			}
		})
		g.run(30)
		require.Greater(t, handled, 60)
		require.Less(t, late, handled/10)
	}
}

// TestMessagesOfAFormerSessionAreNotKept: their ticks may mean nothing in the new one.
func TestMessagesOfAFormerSessionAreNotKept(t *testing.T) {
	g, sent := newMessageGame(t, profile{oneWay: 0.075})
	newView(g)
	handled := 0
	replication.OnServerMessage(g.client, func(explosion) { handled++ })
	replication.OnServerMessage(g.client, func(whistle) { handled++ })
	g.run(5)
	g.muted = func(float64) bool { return true }
	g.run(0.3)
	g.muted = nil
	g.client.Reconnect()
	g.run(1)
	require.Greater(t, handled+12, len(sent), "of the second without contact, some are lost with the session")
}

// TestImmediateMessagesDoNotWait: they are handled in the frame in which they arrive.
func TestImmediateMessagesDoNotWait(t *testing.T) {
	type chat struct{ Tick uint32 }
	g := &game{t: t, rand: newRand(t), profile: profile{oneWay: 0.075}, rate: 20, frames: 144}
	g.prepare(1, func() {
		replication.RegisterMessage[chat](g.schema, replication.Immediate())
		replication.RegisterMessage[whistle](g.schema)
	})
	e := g.spawn(place{})
	g.onTick = func(n int) {
		g.place(e).X = float32(n % 100)
		if g.peer.Connected() {
			require.NoError(t, replication.SendToClient(g.peer, chat{uint32(g.server.Tick()) + 1}))
			require.NoError(t, replication.SendToClient(g.peer, whistle{uint32(g.server.Tick()) + 1}))
		}
	}
	v := newView(g)
	early, inTime := 0, 0
	replication.OnServerMessage(g.client, func(m chat) {
		if at, ok := v.Time(); ok && int32(m.Tick-uint32(at.Tick)) > 0 {
			early++
		}
	})
	replication.OnServerMessage(g.client, func(m whistle) {
		if at, ok := v.Time(); ok && int32(m.Number-uint32(at.Tick)) <= 0 {
			inTime++
		}
	})
	g.run(10)
	require.Greater(t, early, 190)
	require.Greater(t, inTime, 190)
}

// TestMessagesForgetEntitiesOfAWorldThatWasReset: while they wait. In the world as it is then, the same handle may be
// that of another entity.
func TestMessagesForgetEntitiesOfAWorldThatWasReset(t *testing.T) {
	schema := replication.NewSchema()
	replication.Register[place](schema)
	replication.RegisterMessage[explosion](schema)
	remote, local := ecs.NewWorld(), ecs.NewWorld()
	id := ecs.ComponentID[place](&remote)
	target := remote.NewEntity(ecs.ComponentID[replication.Replicated](&remote), id)
	server := replication.NewServer(&remote, schema, replication.WithTickRate(60))
	var client *replication.Client
	peer := server.Connect(func(packet []byte) error { return client.Receive(packet) })
	client = replication.NewClient(&local, schema)
	client.SetSend(peer.Receive)
	interpolation.Attach(client)
	var shown []ecs.Entity
	replication.OnServerMessage(client, func(e explosion) { shown = append(shown, e.Target) })
	frame := func(between func()) {
		(*place)(remote.Get(target, id)).X++
		server.Replicate()
		require.NoError(t, client.Frame(time.Second/60))
		between()
	}
	rest := func() {
		for range 20 {
			frame(func() {})
		}
	}
	for range 4 {
		rest()
	}
	replica := func() ecs.Entity {
		id, _ := server.NetID(target)
		e, ok := client.Entity(id)
		require.True(t, ok)
		return e
	}
	send := func() { require.NoError(t, replication.SendToClient(peer, explosion{Target: target})) }

	send()
	rest()
	require.Equal(t, []ecs.Entity{replica()}, shown)
	send()
	frame(func() {
		local.Reset()
		local.NewEntity()
	})
	send() // when the world is full again
	rest()
	require.Equal(t, []ecs.Entity{{}, replica()}, shown[1:])
}
