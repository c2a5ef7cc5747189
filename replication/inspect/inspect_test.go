package inspect

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
)

// sum adds values, and counts those that are not known.
func sum(values []*float64) (total float64, unknown int) {
	for _, v := range values {
		if v == nil {
			unknown++
		} else {
			total += *v
		}
	}
	return total, unknown
}

func mean(t testing.TB, values []*float64) float64 {
	t.Helper()
	total, unknown := sum(values)
	require.Less(t, unknown, len(values))
	return total / float64(len(values)-unknown)
}

// TestAServerIsMeasured: what an inspector shows is what was sent.
func TestAServerIsMeasured(t *testing.T) {
	g := newGame(t, 40, 3, 0.1, WithName("eu-1"))
	g.run(t, 60*20)
	a := read(t, g.inspector, 0, int(2))
	require.Equal(t, "server", a.Kind)
	require.Equal(t, "eu-1", a.Name)
	require.Equal(t, 1100, a.MTU, "the largest of the peers")
	require.Zero(t, a.From)
	require.InDelta(t, 79, a.Next, 3, "four samples a second")
	require.Len(t, a.Samples, int(serverKeys))
	for name, values := range a.Samples {
		require.Len(t, values, a.Next, name)
	}

	var bytes, acked, lost, sent uint64
	for _, p := range g.players {
		s := p.peer.Stats()
		bytes += s.Bytes + s.MessageBytes
		acked, lost = acked+s.Acked, lost+s.Lost
		sent += s.Updates + s.FullStates + s.KeyframeFallbacks
	}
	all, _ := sum(a.Samples["bandwidth"])
	kbits := float64(bytes) * 8 / 1000 / 0.25 // a sample is a quarter of a second
	require.InEpsilon(t, kbits, all, 0.08)
	parts := 0.0
	for i := range a.Components {
		part, _ := sum(a.Stack[i])
		parts += part
	}
	require.Less(t, parts, all, "headers are not of components")
	require.Greater(t, parts, all/3)
	require.InDelta(t, 10, mean(t, a.Samples["loss"][40:]), 5)
	require.InDelta(t, float64(lost)/float64(acked+lost)*100, mean(t, a.Samples["loss"][40:]), 4)
	require.InDelta(t, 60, mean(t, a.Samples["ticks"]), 1)
	require.InDelta(t, 40, *a.Samples["entities"][70], 0)
	require.InDelta(t, 120, mean(t, a.Samples["sent"][20:]), 30, "per tick, at all peers")
	require.InDelta(t, 3000.0/60, mean(t, a.Samples["roundTrip"][20:]), 10, "ms")
	require.InDelta(t, 6, mean(t, a.Samples["age"][20:]), 3)
	require.Positive(t, mean(t, a.Samples["work"]))
	largest, size := mean(t, a.Samples["largest"]), mean(t, a.Samples["size"])
	require.Greater(t, largest, size)
	require.Less(t, largest, 1201.0)

	require.Len(t, a.Components, 2)
	require.Equal(t, "Position", a.Components[0].Name)
	x := a.Components[0].Fields[0]
	require.Equal(t, "X", x.Name)
	require.Equal(t, 32, x.Raw)
	require.Equal(t, 17, x.Fixed)
	require.Contains(t, x.Codec, "float32")
	require.Equal(t, []int{8, 16}, []int{a.Components[1].Fields[0].Raw, a.Components[1].Fields[1].Raw})

	require.Len(t, a.Peers, 3)
	require.Equal(t, "test a \"quoted\\\" <pl\nace>", a.Peers[1]["remote"])
	require.Equal(t, 2, a.Peer.Number)
	require.Equal(t, 1100, a.Peer.MTU)
	require.Equal(t, PeerNumber(g.players[2].peer), a.Peer.Number)
	require.Len(t, a.Peer.Samples, int(peerKeys))
	require.InDelta(t, all/3, func() float64 { v, _ := sum(a.Peer.Samples["bandwidth"]); return v }(), all/20)
	require.InDelta(t, 6, mean(t, a.Peer.Samples["age"][20:]), 3)
	var packets uint64
	for _, n := range a.Sizes {
		packets += n
	}
	require.InEpsilon(t, mean(t, a.Samples["packets"])*20, float64(packets), 0.05)
	require.EqualValues(t, g.server.Stats().Spawns, a.Counters["Spawns"])
}

// TestSamplesAreReadOnce: since names what a reader has; what is older than 60 seconds is gone.
func TestSamplesAreReadOnce(t *testing.T) {
	g := newGame(t, 3, 1, 0)
	g.run(t, 60*70)
	a := read(t, g.inspector, 0, -1)
	require.Nil(t, a.Peer)
	require.Equal(t, kept, a.Next-a.From)
	require.Len(t, a.Samples["time"], kept)
	last := -1.0
	for _, at := range a.Samples["time"] {
		require.InDelta(t, 0.25, *at-max(last, *at-0.3), 0.06)
		last = *at
	}
	g.run(t, 60)
	b := read(t, g.inspector, int64(a.Next), -1)
	require.Equal(t, a.Next, b.From)
	require.InDelta(t, 4, b.Next-b.From, 1)
	c := read(t, g.inspector, int64(b.Next), -1)
	require.Empty(t, c.Samples["time"])
	for _, since := range []int64{math.MinInt64, -1, 1, math.MaxInt64} {
		require.Len(t, read(t, g.inspector, since, -1).Samples["time"], kept, since)
	}
}

// TestPeersComeAndGo: the memory of those that leave is used again, and their counters stay in the sums.
func TestPeersComeAndGo(t *testing.T) {
	g := newGame(t, 3, 4, 0, WithPeers(2))
	g.run(t, 120)
	a := read(t, g.inspector, 0, 3)
	require.Len(t, a.Peers, 2)
	require.Nil(t, a.Peer, "it is beyond the limit")
	require.EqualValues(t, 4, a.Counters["Peers"])
	gone := g.players[0]
	was := gone.peer.Stats().Bytes
	require.NotZero(t, was)
	gone.peer.Disconnect(replication.Reason{})
	g.players = g.players[1:]
	g.run(t, 60)
	require.Len(t, read(t, g.inspector, 0, -1).Peers, 1)
	g.join(t)
	g.run(t, 60)
	a = read(t, g.inspector, 0, 4)
	require.Len(t, a.Peers, 2)
	require.Equal(t, 4, a.Peer.Number)
	require.Positive(t, a.Peer.From)
	require.Less(t, a.Next-a.Peer.From, 6, "a new peer has no past")
	e := g.inspector.end.(*server)
	require.Equal(t, 2, e.shown)
	require.LessOrEqual(t, e.gone.Bytes, was)
	require.GreaterOrEqual(t, e.gone.Bytes, was*9/10)
	require.Empty(t, e.spare)
	require.Len(t, e.find, 4)
}

// TestAClientIsMeasured by what came.
func TestAClientIsMeasured(t *testing.T) {
	g := newGame(t, 40, 1, 0.1)
	p := g.players[0]
	s := g.timed(Client(p.client, WithInterpolation(p.shows)))
	g.run(t, 60*20)
	a := read(t, s, 0, -1)
	require.Equal(t, "client", a.Kind)
	require.Len(t, a.Samples, int(clientKeys))
	all, _ := sum(a.Samples["bandwidth"])
	states, _ := sum(a.Stack[0])
	stats := p.client.Stats()
	require.InEpsilon(t, float64(stats.Bytes)*8/1000/0.25, states, 0.08)
	require.GreaterOrEqual(t, all, states)
	require.InDelta(t, 10, mean(t, a.Samples["loss"][40:]), 5)
	require.InDelta(t, 6, mean(t, a.Samples["age"][20:]), 3)
	require.InDelta(t, 40, *a.Samples["entities"][60], 0)
	require.InDelta(t, float64(p.shows.Stats().Delay)/1e6, *a.Samples["delay"][a.Next-1], 40)
	require.InDelta(t, 60, mean(t, a.Samples["ticks"]), 1)
	require.Positive(t, mean(t, a.Samples["receive"]))
	starved, unknown := sum(a.Samples["starved"])
	require.Zero(t, unknown)
	require.InDelta(t, p.shows.Stats().Starved, starved, 5)
	require.Positive(t, mean(t, a.Samples["up"]))
	require.EqualValues(t, stats.Spawns, a.Counters["Spawns"])
}

// TestSilenceIsUnknown, not zero.
func TestSilenceIsUnknown(t *testing.T) {
	g := newGame(t, 3, 0, 0)
	g.run(t, 60)
	a := read(t, g.inspector, 0, -1)
	for _, key := range []string{"roundTrip", "worst", "loss", "age", "size", "largest"} {
		total, unknown := sum(a.Samples[key])
		require.Zero(t, total, key)
		require.Equal(t, a.Next, unknown, key)
	}
	total, unknown := sum(a.Samples["bandwidth"])
	require.Zero(t, total)
	require.Zero(t, unknown)
}

// TestAReaderDelaysNoTick: samples wait for it, for a second.
func TestAReaderDelaysNoTick(t *testing.T) {
	g := newGame(t, 3, 1, 0)
	g.run(t, 60)
	n := g.inspector.values.n
	g.inspector.mu.Lock()
	g.run(t, 60)
	require.Equal(t, n, g.inspector.values.n)
	g.inspector.mu.Unlock()
	g.run(t, 1)
	require.Equal(t, n+1, g.inspector.values.n)
	a := read(t, g.inspector, n, -1)
	require.InDelta(t, 60, *a.Samples["ticks"][0], 1, "the sample is longer")
}

// TestClose: nothing is measured afterwards, and others still are.
func TestClose(t *testing.T) {
	g := newGame(t, 3, 1, 0)
	other := g.timed(Server(g.server))
	g.run(t, 60)
	g.inspector.Close()
	g.inspector.Close()
	n := read(t, g.inspector, 0, -1).Next
	m := read(t, other, 0, -1).Next
	g.run(t, 60)
	require.Equal(t, n, read(t, g.inspector, 0, -1).Next)
	require.Less(t, m, read(t, other, 0, -1).Next)
	g.server.Close()
	steps := other.since.steps
	require.Panics(t, g.server.Replicate)
	require.Equal(t, steps, other.since.steps, "it did not begin")
	read(t, other, 0, -1)
}

func TestMisuse(t *testing.T) {
	g := newGame(t, 1, 1, 0)
	shows := g.players[0].shows
	for sentence, call := range map[string]func(){
		"inspect: WithPeers of a negative number: use 0 to show none":         func() { WithPeers(-1) },
		"inspect: WithInterpolation of nil: interpolation.Attach returns one": func() { WithInterpolation(nil) },
		"inspect: an option is nil: leave it out":                             func() { Server(g.server, nil) },
		"inspect: Server WithInterpolation: that is an option of Client":      func() { Server(g.server, WithInterpolation(shows)) },
		"replication: there is no server: NewServer makes one":                func() { Server(nil) },
		"replication: there is no client: NewClient makes one":                func() { Client(nil) },
		"replication: there is no peer: Server.Connect returns one":           func() { PeerNumber(nil) },
	} {
		require.PanicsWithValue(t, sentence, call)
	}
}

// TestNothingIsAllocated while nobody looks, neither by samples nor between them.
func TestNothingIsAllocated(t *testing.T) {
	replicationtest.SkipAllocations(t)
	g := newGame(t, 20, 20, 0)
	g.run(t, 200)
	s := g.inspector
	require.Zero(t, testing.AllocsPerRun(100, func() { s.sample(s.from.Add(time.Second)) }))
	c := g.timed(Client(g.players[0].client, WithInterpolation(g.players[0].shows)))
	require.Zero(t, testing.AllocsPerRun(100, func() { c.sample(c.from.Add(time.Second)) }))
}

// BenchmarkSample is of a server with 200 peers.
func BenchmarkSample(b *testing.B) {
	g := newGame(b, 100, 200, 0)
	g.run(b, 60)
	s := g.inspector
	b.ReportAllocs()
	for b.Loop() {
		s.sample(s.from.Add(interval))
	}
}

// BenchmarkReplicate is a tick in which no sample is taken; what the watching adds to it is for each packet.
func BenchmarkWatch(b *testing.B) {
	g := newGame(b, 100, 1, 0)
	g.inspector.now = time.Now
	g.inspector.from = time.Now().Add(time.Hour)
	for name, at := range map[string]int{"packet": 2, "replicate": 0} {
		b.Run(name, func(b *testing.B) {
			w := *g.inspector.watchers
			for b.Loop() {
				if at == 2 {
					w.Note(2, 800)
					continue
				}
				w.Note(0, 0)
				w.Note(1, 0)
			}
		})
	}
}

// BenchmarkJSON is of a server with 200 peers and all samples.
func BenchmarkJSON(b *testing.B) {
	g := newGame(b, 100, 200, 0)
	g.run(b, 60)
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = g.inspector.AppendJSON(buf[:0], g.inspector.values.n-1, -1)
	}
	b.ReportMetric(float64(len(buf)), "B")
}

// TestPacketsAreCountedBySize: the classes are the buckets of the metric.
func TestPacketsAreCountedBySize(t *testing.T) {
	for _, mtu := range []int{1200, 1201, 64, 1187} {
		for bytes := range 2 * mtu {
			var p packets
			p.count(bytes, mtu)
			for i := range classes - 1 {
				var below uint64
				for _, n := range p.classes[:i+1] {
					below += n
				}
				require.Equal(t, bytes <= (i+1)*mtu/(classes-1), below == 1, "%d of %d", bytes, mtu)
			}
		}
	}
}
