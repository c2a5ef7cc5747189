package recording_test

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/recording"
)

// TestAReplicateThatPanics, since the send function of a peer does, is not recorded; all others are, with each message at
// most once, in order.
func TestAReplicateThatPanics(t *testing.T) {
	t.Parallel()
	schema := newSchema()
	p := newPlay(3, schema)
	fails := false
	w := ecs.NewWorld()
	client := replication.NewClient(&w, schema)
	peer := p.server.Connect(func(packet []byte) error {
		if fails {
			panic("send")
		}
		return client.Receive(packet)
	})
	peer.SetData("player")
	client.SetSend(peer.Receive)
	var file bytes.Buffer
	r := recording.NewRecorder(p.server, &file, recording.WithSegment(200*time.Millisecond))
	random := rand.New(rand.NewPCG(7, 8))
	truth, failed := []map[replication.NetID]state{}, map[int]bool{}
	for n := range 600 {
		fails = n > 20 && random.IntN(12) == 0
		func() {
			defer func() {
				if recover() != nil {
					failed[n] = true
					p.n++
				}
			}()
			p.step(t)
		}()
		truth = append(truth, p.truth(schema))
		fails = false
		require.NoError(t, client.Frame(time.Second/rate))
	}
	require.NoError(t, r.Close())
	require.Greater(t, len(failed), 30)
	require.EqualValues(t, len(failed), r.Stats().Dropped)

	player, world, _ := newPlayer(t, file.Bytes())
	last, ticks := uint32(0), 0
	replication.OnServerMessage(player.Client(), func(h hit) {
		require.Greater(t, h.N, last)
		last = h.N
	})
	for !player.Ended() {
		require.NoError(t, player.Step())
		n := int((player.Position()*rate + time.Second/2) / time.Second)
		if !failed[n] {
			require.Equal(t, truth[n], shown(world, player.Client(), schema), "tick %d", n)
			ticks++
		}
	}
	require.Equal(t, 600-len(failed), ticks)
	require.NoError(t, player.Damage())
}

// TestAClientsRecorderThatDrops records nothing more until the next session, and what it has is true.
func TestAClientsRecorderThatDrops(t *testing.T) {
	t.Parallel()
	schema := newSchema()
	p := newPlay(3, schema)
	w := ecs.NewWorld()
	client := replication.NewClient(&w, schema)
	peer := p.server.Connect(client.Receive)
	peer.SetData("referee")
	client.SetSend(peer.Receive)
	disk := &slow{}
	disk.stop.Lock()
	r := recording.NewClientRecorder(client, disk, recording.WithQueue(64<<10))
	truth := map[time.Duration]map[replication.NetID]state{}
	now, frames := time.Duration(0), 0
	play := func(n int) {
		for range n {
			p.step(t)
			now += time.Second / rate
			require.NoError(t, client.Frame(time.Second/rate))
			truth[now] = shown(&w, client, schema)
			frames++
		}
	}
	for r.Stats().Dropped == 0 {
		play(1)
		require.Less(t, frames, 20000)
	}
	disk.stop.Unlock()
	require.Eventually(t, func() bool { return disk.len() == int(r.Stats().Bytes) }, 10*time.Second, time.Millisecond)
	play(300)
	require.EqualValues(t, 301, r.Stats().Dropped)
	client.Reconnect()
	play(300)
	require.NoError(t, r.Close())
	require.Less(t, r.Stats().Dropped, uint64(310), "of a new session all is kept")

	player, world, err := open(disk.bytes())
	require.NoError(t, err)
	played, jumps, since, last := 0, 0, 0, time.Duration(0)
	for !player.Ended() {
		require.NoError(t, player.Step())
		if at := player.Position(); last > 0 && at > last+time.Second/rate+time.Microsecond {
			jumps, since = jumps+1, 0
		}
		last = player.Position()
		if since++; jumps == 0 || since > 2 { // the first states of the new session have come
			require.Equal(t, truth[last], shown(world, player.Client(), schema), "%v", last)
		}
		played++
	}
	require.Equal(t, 1, jumps)
	require.InDelta(t, frames-int(r.Stats().Dropped), played, 10)
	require.Zero(t, player.Client().Stats().MissingBaselines)
	require.NoError(t, player.Damage())
}

// TestWhereAPlayerMayNotChange it panics with a sentence that names the call, and the player goes on.
func TestWhereAPlayerMayNotChange(t *testing.T) {
	t.Parallel()
	file, truth := record(t, 200)
	p, w, schema := newPlayer(t, file)
	calls := map[string]func(){
		"Seek":  func() { _ = p.Seek(time.Second) },
		"Step":  func() { _ = p.Step() },
		"Back":  func() { _ = p.Back() },
		"Frame": func() { _ = p.Frame(time.Second) },
	}
	tried := 0
	replication.OnSpawn(p.Client(), func(ecs.Entity) {
		for name, call := range calls {
			require.PanicsWithValue(t, "replication: Player."+name+" in a hook: the Frame that called it has not ended; "+
				"note it and do so afterwards", call)
			tried++
		}
	})
	require.NoError(t, p.Seek(2*time.Second))
	require.Equal(t, truth[120], shown(w, p.Client(), schema))
	require.Positive(t, tried)
	p.Client().Close()
	for name, call := range calls {
		require.PanicsWithValue(t, "recording: Player."+name+" after Close or Detach of its client: make another player", call)
	}
}
