package game

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/arche-replicate/arche-replicate/replication/recording"
)

// A spectator is a live client of the arena.
type spectator struct {
	world  ecs.World
	client *replication.Client
	peer   *replication.Peer
	link   *netsim.Link
	bytes  int
}

func newSpectator(server *replication.Server, c replication.Coding, latency float64, seed uint64) *spectator {
	s := &spectator{world: ecs.NewWorld(), link: netsim.NewLink(seed, netsim.Config{Latency: latency})}
	s.peer = server.Connect(func(packet []byte) error {
		s.bytes += len(packet)
		return s.link.Down.Send(packet)
	}, replication.WithCoding(c))
	schema, _ := NewSchema()
	s.client = replication.NewClient(&s.world, schema, replication.WithSeed(seed))
	s.client.SetSend(s.link.Up.Send)
	return s
}

func (s *spectator) step() error {
	s.link.Step()
	s.link.Up.Receive(func(packet []byte) { _ = s.peer.Receive(packet) })
	s.link.Down.Receive(func(packet []byte) { _ = s.client.Receive(packet) })
	return s.client.Frame(time.Second / 60)
}

// census sums up what a world shows, code for code.
func census(c *replication.Client, r *Reader) (sum Census) {
	for id, e := range c.Entities() {
		sum.Add(id, r.Codes(e, nil))
	}
	return sum
}

// sizeOfARecording is that of TestARecording, in ticks at 60 Hz and bots.
func sizeOfARecording() (ticks, bots int) {
	if minutes, err := strconv.Atoi(os.Getenv("ARENA_MINUTES")); err == nil {
		return minutes * 3600, 360
	}
	if testing.Short() {
		return 200, 240
	}
	return 1800, 360
}

// TestARecording is of bots that fight. Every tick of the replay equals what the server had, code for code; the file is
// small beside what a live client was sent; and seeking does not take as long as three seconds of ticks one by one, on
// an uneven machine.
func TestARecording(t *testing.T) {
	ticks, bots := sizeOfARecording()
	g := New(1, bots, 60)
	schema, model := NewSchema()
	server := replication.NewServer(&g.World, schema, replication.WithSeed(1), replication.WithTickRate(60))
	host := NewHost(g, server, model, 60)
	packed := newSpectator(server, replication.Packed, 3, 2)
	compact := newSpectator(server, replication.Compact, 3, 3)
	var file bytes.Buffer
	recorder := recording.NewRecorder(server, &file)
	reader := NewReader(&g.World, schema)
	truth, entities := make([]Census, 0, ticks), 0
	var steps, seeks []time.Duration
	last := map[replication.NetID][]uint64{}
	for range ticks {
		host.Step()
		server.Replicate()
		sum, now := Census{}, map[replication.NetID][]uint64{}
		filter := ecs.All(ecs.ComponentID[replication.Replicated](&g.World))
		query := g.World.Query(&filter)
		for query.Next() {
			e := query.Entity()
			id, _ := server.NetID(e)
			now[id] = reader.CodesAfter(e, last[id], nil)
			sum.Add(id, now[id])
		}
		truth, last = append(truth, sum), now
		entities += sum.Entities
		require.NoError(t, packed.step())
		require.NoError(t, compact.step())
	}
	require.NoError(t, recorder.Close())
	size := float64(file.Len())
	t.Logf("%d entities, %d ticks: %d bytes, %.3f of live Packed (%d), %.3f of live Compact (%d)", entities/ticks, ticks,
		file.Len(), size/float64(packed.bytes), packed.bytes, size/float64(compact.bytes), compact.bytes)
	require.Less(t, size/float64(packed.bytes), 0.40)
	require.Less(t, size/float64(compact.bytes), 0.52)

	w := ecs.NewWorld()
	player, err := recording.NewPlayer(&w, schema, bytes.NewReader(file.Bytes()), int64(file.Len()))
	require.NoError(t, err)
	mirror := NewReader(&w, schema)
	for i := range truth {
		from := time.Now()
		require.NoError(t, player.Step())
		steps = append(steps, time.Since(from))
		require.Equal(t, truth[i], census(player.Client(), mirror), "tick %d", i)
	}
	require.NoError(t, player.Damage())
	for i := range 100 {
		n := i * 7919 % ticks
		from := time.Now()
		require.NoError(t, player.Seek(time.Duration(n)*time.Second/60))
		seeks = append(seeks, time.Since(from))
		require.Equal(t, truth[n], census(player.Client(), mirror), "tick %d", n)
	}
	slices.Sort(seeks)
	t.Logf("seek: median %v, at most %v", seeks[50], seeks[99])
	slices.Sort(steps)
	require.Less(t, seeks[50], 180*steps[ticks/2])
}
