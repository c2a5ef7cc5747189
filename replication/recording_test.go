package replication_test

import (
	"errors"
	"testing"
	"time"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
)

// A recordedFrame is what a client was given in a frame.
type recordedFrame struct {
	dt      time.Duration
	packets [][]byte
}

type recordedHit struct{ Of uint32 }

// play gives a client a frame.
func (f *recordedFrame) play(client *replication.Client) error {
	client.Advance(f.dt)
	for _, packet := range f.packets {
		_ = client.Receive(packet)
	}
	return client.Apply()
}

// TestReplaysEqualWhatWasRecorded: a client that gets the same packets in the same frames as another one, and has the
// same seed, shows the same in each frame and handles the same messages, though it sends nothing.
func TestReplaysEqualWhatWasRecorded(t *testing.T) {
	seed := replicationtest.Seed(t)
	schema := replication.NewSchema()
	replication.Register[berth](schema)
	replication.RegisterInput[steer](schema)
	replication.RegisterMessage[recordedHit](schema)
	world := ecs.NewWorld()
	server := replication.NewServer(&world, schema, replication.WithSeed(seed))
	link := netsim.NewLink(seed, netsim.Config{Latency: 4, Jitter: 2, Loss: 0.1, Duplicate: 0.05})
	peer := server.Connect(link.Down.Send)
	id := ecs.ComponentID[berth](&world)

	var shown ecs.World
	hits := 0
	newClient := func(seed uint64, send func([]byte) error) *replication.Client {
		shown, hits = ecs.NewWorld(), 0
		client := replication.NewClientWith(&shown, schema, send, replication.WithSeed(seed))
		replication.OnServerMessage(client, func(recordedHit) { hits++ })
		return client
	}
	look := func(client *replication.Client) (all map[replication.NetID]berth, messages int) {
		all = map[replication.NetID]berth{}
		for id, e := range client.Entities() {
			all[id] = *(*berth)(shown.Get(e, ecs.ComponentID[berth](&shown)))
		}
		return all, hits
	}

	type view struct {
		all  map[replication.NetID]berth
		hits int
	}
	var frames []recordedFrame
	var views []view
	client := newClient(seed+1, link.Up.Send)
	var ships []ecs.Entity
	for n := range 2000 {
		if len(ships) < 30 {
			ships = append(ships, world.NewEntity(id, replication.ReplicatedID(&world)))
		} else if n%20 == 0 {
			world.RemoveEntity(ships[0])
			ships = ships[1:]
		}
		for i, e := range ships {
			(*berth)(world.Get(e, id)).X += float32(i%3) - 1
		}
		if n%50 == 0 && peer.Connected() {
			require.NoError(t, replication.SendToClient(peer, recordedHit{uint32(n)}))
		}
		server.Replicate()
		link.Step()
		link.Up.Receive(func(packet []byte) { _ = peer.Receive(packet) })
		f := recordedFrame{dt: time.Second / 60 * time.Duration(n%3) / 2}
		link.Down.Receive(func(packet []byte) { f.packets = append(f.packets, append([]byte{}, packet...)) })
		frames = append(frames, f)
		if tick := client.InputTick(); tick != 0 {
			_ = replication.SetInput(client, tick, steer{X: 1})
		}
		require.NoError(t, f.play(client))
		all, messages := look(client)
		views = append(views, view{all, messages})
	}
	require.Greater(t, hits, 20)
	require.Len(t, views[len(views)-1].all, 30)

	toNobody := func([]byte) error { return errors.New("nobody listens") }
	replay := newClient(seed+1, toNobody)
	for i := range frames {
		require.NoError(t, frames[i].play(replay))
		all, messages := look(replay)
		require.Equal(t, views[i], view{all, messages}, "frame %d", i)
	}

	stranger := newClient(seed+2, toNobody)
	for i := range frames {
		for _, packet := range frames[i].packets {
			require.Error(t, stranger.Receive(packet))
		}
	}
	require.Equal(t, replication.StatusConnecting, stranger.Status())
}
