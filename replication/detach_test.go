package replication

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

type tNamed struct {
	Name string `repl:"max=20"`
}

type tFollows struct{ Of ecs.Entity }

func detachSchema() *Schema {
	s := NewSchema()
	Register[tPosition](s)
	Register[tNamed](s)
	Register[tFollows](s)
	RegisterResource[tHealth](s)
	return s
}

// TestHostMigration: a server is gone. One of its clients serves its world, and another one joins there and shows the
// same.
func TestHostMigration(t *testing.T) {
	schema := detachSchema()
	host, second, third := ecs.NewWorld(), ecs.NewWorld(), ecs.NewWorld()
	server := NewServer(&host, schema)
	var clients []*Client
	var peers []*Peer
	var packets [2][][]byte
	for i, w := range []*ecs.World{&second, &third} {
		peers = append(peers, server.Connect(func(p []byte) error {
			packets[i] = append(packets[i], append([]byte(nil), p...))
			return nil
		}))
		clients = append(clients, NewClientWith(w, schema, func(p []byte) error { _ = peers[i].Receive(p); return nil }))
	}
	play := func(first int) {
		for range 30 {
			server.Replicate()
			for i := first; i < len(clients); i++ {
				for len(packets[i]) > 0 {
					_ = clients[i].Receive(packets[i][0])
					packets[i] = packets[i][1:]
				}
				require.NoError(t, clients[i].Apply())
			}
		}
	}
	ids := func(w *ecs.World) (position, name, follows ecs.ID) {
		return ecs.ComponentID[tPosition](w), ecs.ComponentID[tNamed](w), ecs.ComponentID[tFollows](w)
	}
	ecs.AddResource(&host, &tHealth{HP: 7})
	const n = 100
	position, name, follows := ids(&host)
	var before ecs.Entity
	for i := range n {
		e := host.NewEntity(position, name, follows, ReplicatedID(&host))
		(*tPosition)(host.Get(e, position)).X = float32(i)
		(*tNamed)(host.Get(e, name)).Name = fmt.Sprint("name ", i)
		(*tFollows)(host.Get(e, follows)).Of, before = before, e
	}
	play(0)

	hooks := 0
	clients[0].OnDespawn(func(ecs.Entity) { hooks++ })
	var own []ecs.Entity
	for _, e := range clients[0].Entities() {
		own = append(own, e)
	}
	require.Len(t, own, n)
	clients[0].Detach()
	require.Zero(t, hooks)
	require.Error(t, clients[0].Apply())
	require.Equal(t, StatusDisconnected, clients[0].Status())
	clients[0].Detach()
	clients[0].Close()
	require.PanicsWithValue(t, "replication: Reconnect of a closed client: make a new one with NewClient", clients[0].Reconnect)
	clients[0] = nil
	for _, e := range own {
		require.True(t, second.Alive(e))
		require.False(t, second.Has(e, MirroredID(&second)))
		second.Add(e, ReplicatedID(&second))
	}
	server = NewServer(&second, schema)
	for range 3 { // strings are still held
		runtime.GC()
		_ = make([]string, 10000)
	}
	peers[1] = server.Connect(func(p []byte) error {
		packets[1] = append(packets[1], append([]byte(nil), p...))
		return nil
	})
	packets[1] = nil
	clients[1].Reconnect()
	play(1)

	require.True(t, clients[1].Complete())
	position, name, follows = ids(&third)
	seen := 0
	for _, e := range clients[1].Entities() {
		x := (*tPosition)(third.Get(e, position)).X
		require.Equal(t, fmt.Sprint("name ", x), (*tNamed)(third.Get(e, name)).Name)
		if of := (*tFollows)(third.Get(e, follows)).Of; x > 0 {
			require.Equal(t, x-1, (*tPosition)(third.Get(of, position)).X)
		}
		seen++
	}
	require.Equal(t, n, seen)
	require.EqualValues(t, 7, ecs.GetResource[tHealth](&third).HP)
	require.EqualValues(t, 7, ecs.GetResource[tHealth](&second).HP)
}

// TestDetachLeavesTheWorld: another client may take the world, and a reset of it is the user's.
func TestDetachLeavesTheWorld(t *testing.T) {
	x := connectedWire(t, testSchema())
	for range 5 {
		x.spawn(ecs.ComponentID[tPosition](x.world))
	}
	x.rounds(3)
	q := x.mirror.Query(ecs.All())
	require.PanicsWithValue(t, "replication: Detach on a locked world: call it outside of queries, since it removes entities", x.client.Detach)
	q.Close()
	x.client.Detach()
	require.Len(t, x.up, 3, "disconnects")
	x.answer(x.up...)
	x.up = nil
	require.False(t, x.peer.Connected())
	require.Equal(t, 5, x.mirror.Stats().Entities.Used)
	x.connect()
	x.client = NewClientWith(x.mirror, faceOf(x.server.schema), func(p []byte) error {
		x.up = append(x.up, append([]byte(nil), p...))
		return nil
	})
	x.rounds(10)
	require.Equal(t, 10, x.mirror.Stats().Entities.Used, "5 are the user's")
	x.client.Close()
	require.Equal(t, 5, x.mirror.Stats().Entities.Used)
}
