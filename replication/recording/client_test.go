package recording_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/arche-replicate/arche-replicate/replication/interpolation"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/arche-replicate/arche-replicate/replication/recording"
)

// A view is what a client shows after a frame.
type view struct {
	all  map[replication.NetID]state
	hits int
	at   time.Duration
}

// TestAClientsRecordingShowsWhatItShowed in each frame, with its losses and its frames of unequal length, and through a
// reconnect.
func TestAClientsRecordingShowsWhatItShowed(t *testing.T) {
	t.Parallel()
	seed, schema := replicationtest.Seed(t), newSchema()
	p := newPlay(seed, schema)
	link := netsim.NewLink(seed, netsim.Config{Latency: 4, Jitter: 2, Loss: 0.1, Duplicate: 0.05})
	peer := p.server.Connect(link.Down.Send)
	peer.SetData("referee")
	w := ecs.NewWorld()
	client := replication.NewClient(&w, schema)
	client.SetSend(link.Up.Send)
	hits := 0
	replication.OnServerMessage(client, func(hit) { hits++ })
	var file bytes.Buffer
	r := recording.NewClientRecorder(client, &file)
	var views []view
	at := time.Duration(0)
	for n := range 2000 {
		p.step(t)
		link.Step()
		link.Up.Receive(func(packet []byte) { _ = peer.Receive(packet) })
		link.Down.Receive(func(packet []byte) { _ = client.Receive(packet) })
		if n == 1200 {
			client.Reconnect()
		}
		dt := time.Second / 60 * time.Duration(n%3) / 2
		at += dt
		require.NoError(t, client.Frame(dt))
		if client.Status() != replication.StatusConnecting {
			views = append(views, view{shown(&w, client, schema), hits, at})
		}
	}
	require.NoError(t, r.Close())
	require.Greater(t, hits, 100)

	player, world, err := open(file.Bytes())
	require.NoError(t, err)
	require.NoError(t, player.Damage())
	again := 0
	replication.OnServerMessage(player.Client(), func(hit) { again++ })
	for i := range views {
		require.NoError(t, player.Step())
		require.Equal(t, views[i], view{shown(world, player.Client(), schema), again, player.Position()}, "frame %d", i)
	}
	for _, n := range []int{700, 300, 1900, 1100} {
		for n+1 < len(views) && views[n+1].at == views[n].at {
			n++ // the last frame of that moment
		}
		require.NoError(t, player.Seek(views[n].at))
		require.Equal(t, views[n].all, shown(world, player.Client(), schema), "frame %d", n)
	}
	require.Panics(t, func() { recording.NewClientRecorder(client, &file) }, "it has connected")
}

// TestInterpolationGoesOnWhereSegmentsMeet: with and without segments, the same is shown at the same time.
func TestInterpolationGoesOnWhereSegmentsMeet(t *testing.T) {
	t.Parallel()
	play := func(segment time.Duration) (seen []position, times []replication.Time) {
		schema, w := replication.NewSchema(), ecs.NewWorld()
		replication.Register[position](schema)
		server := replication.NewServer(&w, schema, replication.WithSeed(1))
		id := ecs.ComponentID[position](&w)
		e := w.NewEntity(id, ecs.ComponentID[replication.Replicated](&w))
		var file bytes.Buffer
		r := recording.NewRecorder(server, &file, recording.WithSegment(segment))
		for n := range 600 {
			(*position)(w.Get(e, id)).X = float32(n%97) + float32(n%7)/10
			server.Replicate()
		}
		require.NoError(t, r.Close())
		mirror := ecs.NewWorld()
		p, err := recording.NewPlayer(&mirror, schema, bytes.NewReader(file.Bytes()), int64(file.Len()))
		require.NoError(t, err)
		shows := interpolation.Attach(p.Client())
		for range 1300 {
			require.NoError(t, p.Frame(time.Second/144))
			now, _ := shows.Time()
			times = append(times, now)
			for _, e := range p.Client().Entities() {
				seen = append(seen, *(*position)(mirror.Get(e, ecs.ComponentID[position](&mirror))))
			}
		}
		require.Zero(t, shows.Stats().Jumps)
		return seen, times
	}
	one, times := play(time.Hour)
	many, others := play(time.Second)
	require.Equal(t, times, others)
	require.Equal(t, one, many)
	require.Greater(t, times[len(times)-1].Sub(times[0]), 530.)
}

// TestASeekIsAsSmoothAsPlaying with interpolation, wherever segments begin: what is drawn is some two ticks late, and
// moves on at once.
func TestASeekIsAsSmoothAsPlaying(t *testing.T) {
	t.Parallel()
	for _, rate := range []int{10, 30, 60} {
		schema, w := replication.NewSchema(), ecs.NewWorld()
		replication.Register[position](schema)
		server := replication.NewServer(&w, schema, replication.WithSeed(1), replication.WithTickRate(rate))
		id := ecs.ComponentID[position](&w)
		e := w.NewEntity(id, ecs.ComponentID[replication.Replicated](&w))
		var file bytes.Buffer
		r := recording.NewRecorder(server, &file)
		for n := range 10 * rate {
			(*position)(w.Get(e, id)).X = float32(n)
			server.Replicate()
		}
		require.NoError(t, r.Close())
		mirror := ecs.NewWorld()
		p, err := recording.NewPlayer(&mirror, schema, bytes.NewReader(file.Bytes()), int64(file.Len()))
		require.NoError(t, err)
		interpolation.Attach(p.Client())
		drawn := func() float64 {
			for _, e := range p.Client().Entities() {
				return float64((*position)(mirror.Get(e, ecs.ComponentID[position](&mirror))).X)
			}
			return -1
		}
		for n := 2 * rate; n < 9*rate; n++ {
			require.NoError(t, p.Seek(time.Duration(n)*time.Second/time.Duration(rate)))
			sought := drawn()
			require.InDelta(t, n-2, sought, 1, "tick %d at %d a second", n, rate)
			require.NoError(t, p.Step())
			require.InDelta(t, sought+1, drawn(), 0.3, "after tick %d at %d a second", n, rate)
		}
	}
}

// TestRecordingAllocatesNothing once memory has its size, except where segments begin.
func TestRecordingAllocatesNothing(t *testing.T) {
	replicationtest.SkipAllocations(t)
	p := newPlay(1, newSchema())
	r := recording.NewRecorder(p.server, discard{}, recording.WithSegment(time.Hour))
	for range 600 {
		p.step(t)
	}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		for _, e := range p.ships {
			(*position)(p.world.Get(e, p.ids[0])).X++
		}
		p.server.Replicate()
	}))
	require.NoError(t, r.Close())
}

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }
