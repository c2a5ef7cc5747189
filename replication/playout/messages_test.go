package playout_test

import (
	"testing"
	"time"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/playout"
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
		tick, _, ok := v.Time()
		require.True(t, ok)
		behind := int32(tick - sent[number])
		require.GreaterOrEqual(t, behind, int32(0), "not shown yet")
		if behind > 0 {
			late++
		}
	}
	playout.OnServerMessage(v.Playout, func(m explosion) {
		require.True(t, g.local.Alive(m.Target))
		require.NotNil(t, g.local.Get(m.Target, g.at.place), "it may ask the world")
		took(m.Number)
	})
	playout.OnServerMessage(v.Playout, func(m whistle) { took(m.Number) })
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
		g.onTick = func(n int) {
			g.place(e).X = float32(n % 100)
			if n == 20 {
				g.peer.SetSendInterval(interval) // so that no tick before is on its grid, except by chance
			}
			if n%7 == 0 && n > 30 && g.peer.Connected() {
				g.place(e).Y++
				require.NoError(t, replication.SendToClient(g.peer, explosion{e, uint32(g.place(e).Y)}))
			}
		}
		v := newView(g)
		playout.Interpolate[place](v.Playout, playout.Step("Y"))
		handled, late := 0, 0
		playout.OnServerMessage(v.Playout, func(m explosion) {
			tick, _, _ := v.Time()
			require.Equal(t, float32(m.Number), (*place)(g.local.Get(m.Target, g.at.place)).Y, "interval %d", interval)
			if handled++; int(replication.Tick(tick)-g.client.MessageTick()) >= interval {
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
	v := newView(g)
	handled := 0
	playout.OnServerMessage(v.Playout, func(explosion) { handled++ })
	playout.OnServerMessage(v.Playout, func(whistle) { handled++ })
	g.run(5)
	g.muted = func(float64) bool { return true }
	g.run(0.3)
	g.muted = nil
	g.client.Reconnect()
	g.run(1)
	require.Greater(t, handled+12, len(sent), "of the second without contact, some are lost with the session")
}

func TestMessageMisuse(t *testing.T) {
	g := newGame(t, 1, profileB, 20)
	v := newView(g)
	require.PanicsWithValue(t,
		"playout: OnServerMessage: the function is nil: replication.OnServerMessage with nil ends the handling",
		func() { playout.OnServerMessage[whistle](v.Playout, nil) })
	require.Panics(t, func() { playout.OnServerMessage(v.Playout, func(whistle) {}) }, "not registered")
	require.Panics(t, func() { playout.OnServerMessage(nil, func(whistle) {}) })
}

// TestMessagesForgetEntitiesOfAWorldThatWasReset: while they wait. In the world as it is then, the same handle may be
// that of another entity.
func TestMessagesForgetEntitiesOfAWorldThatWasReset(t *testing.T) {
	schema := replication.NewSchema()
	replication.Register[place](schema)
	replication.RegisterMessage[explosion](schema)
	remote, local := ecs.NewWorld(), ecs.NewWorld()
	id := ecs.ComponentID[place](&remote)
	target := remote.NewEntity(replication.ReplicatedID(&remote), id)
	server := replication.NewServer(&remote, schema, replication.WithTickRate(60))
	var client *replication.Client
	peer := server.Connect(func(packet []byte) error { return client.Receive(packet) })
	client = replication.NewClient(&local, schema, peer.Receive)
	p := playout.New(client)
	var shown []ecs.Entity
	playout.OnServerMessage(p, func(e explosion) { shown = append(shown, e.Target) })
	frame := func(between func()) {
		(*place)(remote.Get(target, id)).X++
		server.Replicate()
		require.NoError(t, client.Frame(time.Second/60))
		between()
		p.Advance(time.Second / 60)
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
