package main

import (
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
)

// BenchmarkReplay measures the two ends of a recorded game apart, per entity that is sent: Replicate with one peer, and
// medians of Receive and Frame of clients that get the same packets afterwards. TRACES may name a directory with the
// traces of docs/benchmarks.md. The crowd of testdata is always played.
func BenchmarkReplay(b *testing.B) {
	for _, trace := range []struct {
		name string
		rtt  int
	}{{"cubes", 6}, {"arena", 6}, {"rocket", 3}, {"football", 2}, {"town", 3}, {"race", 6}, {"crowd", 6}} {
		path := filepath.Join(os.Getenv("TRACES"), trace.name+".trace.csv.zst")
		if trace.name == "crowd" {
			path = filepath.Join("testdata", "crowd.csv")
		}
		if _, err := os.Stat(path); err != nil {
			continue
		}
		for _, coding := range []string{"packed", "compact"} {
			b.Run(trace.name+"/"+coding, func(b *testing.B) {
				film := filmed(b, config{in: path, coding: coding, rtt: trace.rtt, seed: 1, peers: 1, mtu: 1200})
				var receive, apply []float64
				for b.Loop() {
					r, a := film.show(b)
					receive = append(receive, float64(r.Nanoseconds())/float64(film.sent))
					apply = append(apply, float64(a.Nanoseconds())/float64(film.sent))
				}
				b.ReportMetric(float64(film.encoding.Nanoseconds())/float64(film.sent), "encode-ns/entity")
				b.ReportMetric(median(receive), "receive-ns/entity")
				b.ReportMetric(median(apply), "apply-ns/entity")
			})
		}
	}
}

// packetFilm is what a client received.
type packetFilm struct {
	cfg      config
	schema   *replication.Schema
	parts    []component
	ticks    [][][]byte // packets by tick, those of the handshake first
	encoding time.Duration
	sent     uint64 // entities
}

// filmed plays a trace and keeps the packets.
func filmed(b *testing.B, cfg config) *packetFilm {
	src, err := os.Open(cfg.in)
	require.NoError(b, err)
	defer func() { _ = src.Close() }()
	plain, release, err := decompress(src)
	require.NoError(b, err)
	defer release()
	trace, err := newReader(cfg.in, plain)
	require.NoError(b, err)
	film := &packetFilm{cfg: cfg, parts: trace.components}
	film.schema, err = buildSchema(trace.components)
	require.NoError(b, err)
	var faults mismatches
	stage := newStage(trace.components)
	server := replication.NewServer(&stage.world, film.schema,
		replication.WithMTU(cfg.mtu), replication.WithSeed(cfg.seed), replication.WithTuning(replication.Tuning{Window: window(cfg.rtt)}))
	m := newMirror(0, cfg.seed, cfg.peerCoding(), server, film.schema, trace.components, &faults)
	tick := func() {
		m.receive(0)
		begin := time.Now()
		server.Replicate()
		film.encoding += time.Since(begin)
		m.send(0)
		var packets [][]byte
		m.link.Down.Receive(func(packet []byte) {
			packets = append(packets, append([]byte(nil), packet...))
			require.NoError(b, m.client.Receive(packet))
		})
		film.ticks = append(film.ticks, packets)
		require.NoError(b, m.client.Frame(time.Second/60))
		m.send(0)
		m.link.Step()
	}
	for range handshakeTicks {
		tick()
	}
	require.True(b, m.client.Status() == replication.StatusConnected)
	cfg.weather(m.link, false, 1)
	film.encoding = 0
	err = trace.next()
	for now := trace.tick; err == nil; now++ {
		for err == nil && trace.tick == now {
			stage.play(trace)
			err = trace.next()
		}
		tick()
	}
	require.ErrorIs(b, err, io.EOF)
	require.Zero(b, faults.count, faults.first)
	stats := m.peer.Stats()
	film.sent = stats.Updates + stats.FullStates + stats.KeyframeFallbacks
	return film
}

// show lets a new client receive the packets, and returns how long that took.
func (f *packetFilm) show(b *testing.B) (receive, apply time.Duration) {
	world := ecs.NewWorld()
	componentIDs(&world, f.parts)
	client := replication.NewClient(&world, f.schema, replication.WithSeed(1))
	client.SetSend(func([]byte) error { return nil })
	for now, packets := range f.ticks {
		begin := time.Now()
		for _, packet := range packets {
			if err := client.Receive(packet); err != nil {
				b.Fatal(err)
			}
		}
		middle := time.Now()
		if err := client.Frame(time.Second / 60); err != nil {
			b.Fatal(err)
		}
		if now >= handshakeTicks {
			receive, apply = receive+middle.Sub(begin), apply+time.Since(middle)
		}
	}
	return receive, apply
}
