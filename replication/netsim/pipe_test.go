package netsim_test

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication/netsim"
)

// arrival is one delivery of a numbered packet.
type arrival struct {
	seq  uint64
	tick int64
}

// numbered makes a packet of the given size, at least 8, that carries seq.
func numbered(seq uint64, size int) []byte {
	b := make([]byte, size)
	binary.LittleEndian.PutUint64(b, seq)
	return b
}

// run sends perTick packets of size bytes in each of ticks ticks, then waits
// until the pipe is idle, and returns all deliveries in order.
func run(t testing.TB, p *netsim.Pipe, ticks, perTick, size int) []arrival {
	var got []arrival
	var seq uint64
	receive := func() {
		p.Receive(func(packet []byte) {
			got = append(got, arrival{binary.LittleEndian.Uint64(packet), p.Now()})
		})
	}
	for range ticks {
		for range perTick {
			require.NoError(t, p.Send(numbered(seq, size)))
			seq++
		}
		receive()
		p.Step()
	}
	for range 1_000_000 {
		receive()
		if p.Pending() == 0 {
			return got
		}
		p.Step()
	}
	t.Fatal("the pipe never runs dry")
	return nil
}

// checkBooks checks the identity of counters that Stats promises.
func checkBooks(t testing.TB, p *netsim.Pipe) {
	t.Helper()
	s := p.Stats()
	// Without require: the fuzz target calls this a thousand times per run.
	if s.Sent+s.Duplicated != s.Delivered+s.Lost+s.Outage+s.Dropped+uint64(p.Pending()) {
		t.Fatalf("the books don't balance with %d pending: %+v", p.Pending(), s)
	}
}

func TestPerfectPipeDeliversAtOnceAndInOrder(t *testing.T) {
	p := netsim.NewPipe(1, netsim.Config{})
	got := run(t, p, 10, 3, 8)
	require.Len(t, got, 30)
	for i, a := range got {
		require.Equal(t, arrival{uint64(i), int64(i / 3)}, a)
	}
	checkBooks(t, p)
	require.Equal(t, netsim.Stats{Sent: 30, Delivered: 30, SentBytes: 240, DeliveredBytes: 240}, p.Stats())
}

func TestLatencyIsRoundedUpToTicks(t *testing.T) {
	for latency, want := range map[float64]int64{
		0: 0, 0.001: 1, 0.5: 1, 1: 1, 1.25: 2, 3: 3, 3.999: 4,
		0.1 + 0.2: 1, 0.7 * 10: 7, // rounding errors are not a tick
		6.000000000000001: 6,
	} {
		p := netsim.NewPipe(1, netsim.Config{Latency: latency})
		p.Step() // not only at tick 0
		require.NoError(t, p.Send([]byte{1}))
		for p.Now() < 1+want {
			_, ok := p.Next()
			require.False(t, ok, "latency %v: early at tick %d", latency, p.Now())
			p.Step()
		}
		got, ok := p.Next()
		require.True(t, ok, "latency %v: not there after %d ticks", latency, want)
		require.Equal(t, []byte{1}, got)
	}
}

func TestJitterStaysWithinBoundsAndReachesThem(t *testing.T) {
	p := netsim.NewPipe(7, netsim.Config{Latency: 10, Jitter: 4})
	seen := map[int64]int{}
	for _, a := range run(t, p, 1000, 10, 8) {
		seen[a.tick-int64(a.seq/10)]++
	}
	require.Len(t, seen, 8, "delays of above 6 to 14 ticks: %v", seen)
	for delay := int64(7); delay <= 14; delay++ {
		require.InDelta(t, 10_000/8, seen[delay], 200, "delay %d", delay)
	}
	require.Positive(t, p.Stats().Reordered, "jitter alone reorders")
}

func TestJitterAboveLatencyNeverDeliversIntoThePast(t *testing.T) {
	p := netsim.NewPipe(7, netsim.Config{Latency: 1, Jitter: 5})
	var early int
	for _, a := range run(t, p, 1000, 1, 8) {
		delay := a.tick - int64(a.seq)
		require.True(t, 0 <= delay && delay <= 6, "delay %d", delay)
		if delay == 0 {
			early++
		}
	}
	require.InDelta(t, 400, early, 80) // draws below -1 of -5..5
}

func TestReorderHoldsPacketsBack(t *testing.T) {
	p := netsim.NewPipe(3, netsim.Config{Latency: 2, Reorder: 0.2, ReorderBy: 4})
	seen := map[int64]int{}
	for _, a := range run(t, p, 10_000, 1, 8) {
		seen[a.tick-int64(a.seq)]++
	}
	require.InDelta(t, 8000, seen[2], 300)
	for extra := int64(1); extra <= 4; extra++ {
		require.InDelta(t, 500, seen[2+extra], 120, "held back by %d", extra)
	}
	require.Len(t, seen, 5)
	// Delayed by 1, a packet arrives in the same tick as the next one, but was sent before it: no
	// overtaking. Delayed by more, it is overtaken by the next packet unless that is delayed
	// itself.
	require.InDelta(t, 1400, p.Stats().Reordered, 300)
}

func TestReorderedCountsWhatTheReceiverSees(t *testing.T) {
	p := netsim.NewPipe(11, netsim.Config{Latency: 3, Jitter: 3, Reorder: 0.3, ReorderBy: 9, Duplicate: 0.3})
	var newest, late uint64
	for _, a := range run(t, p, 2000, 2, 8) {
		if a.seq < newest {
			late++
		}
		newest = max(newest, a.seq)
	}
	require.Positive(t, late)
	require.Equal(t, late, p.Stats().Reordered)
}

func TestFatesHaveTheirProbabilities(t *testing.T) {
	const n = 50_000
	for _, share := range []float64{0, 0.01, 0.1, 0.5, 0.9, 1} {
		// Five standard deviations of a binomial: one run in a million fails, and the seed is
		// fixed.
		slack := 5*math.Sqrt(n*share*(1-share)) + 0.5

		p := netsim.NewPipe(5, netsim.Config{Loss: share})
		run(t, p, n/10, 10, 8)
		require.InDelta(t, n*share, p.Stats().Lost, slack, "loss %v", share)
		checkBooks(t, p)

		p = netsim.NewPipe(5, netsim.Config{Duplicate: share})
		run(t, p, n/10, 10, 8)
		require.InDelta(t, n*share, p.Stats().Duplicated, slack, "duplicate %v", share)
		checkBooks(t, p)

		p = netsim.NewPipe(5, netsim.Config{Corrupt: share})
		for range n {
			require.NoError(t, p.Send([]byte("intact")))
			p.Receive(func([]byte) {})
		}
		require.InDelta(t, n*share, p.Stats().Corrupted, slack, "corrupt %v", share)
		checkBooks(t, p)
	}
}

// Each packet seeds its dice with its number, so neighbouring packets must be shown to be
// independent.
func TestLossesOfNeighboursAreIndependent(t *testing.T) {
	const n, loss = 100_000, 0.3
	p := netsim.NewPipe(99, netsim.Config{Loss: loss})
	lost := make([]bool, n)
	for i := range lost {
		before := p.Stats().Lost
		require.NoError(t, p.Send(nil))
		lost[i] = p.Stats().Lost > before
		p.Receive(func([]byte) {})
	}
	for _, distance := range []int{1, 2, 3, 4, 8, 16, 32, 64, 128, 256, 1024} {
		both := 0
		for i := distance; i < n; i++ {
			if lost[i] && lost[i-distance] {
				both++
			}
		}
		require.InDelta(t, loss*loss, float64(both)/float64(n-distance), 0.005, "distance %d", distance)
	}
}

func TestOutagesTakeEverythingForAWhile(t *testing.T) {
	const ticks = 200_000
	p := netsim.NewPipe(17, netsim.Config{Burst: netsim.Burst{Start: 0.01, Length: 10}})
	var outages, down int
	was := false
	for range ticks {
		p.Step()
		before := p.Stats().Outage
		for range 3 {
			require.NoError(t, p.Send([]byte{1}))
		}
		now := p.Stats().Outage - before
		require.Contains(t, []uint64{0, 3}, now, "an outage takes all packets of a tick or none")
		if now > 0 {
			down++
			if !was {
				outages++
			}
		}
		was = now > 0
		p.Receive(func([]byte) {})
	}
	require.InDelta(t, 10, float64(down)/float64(outages), 1, "mean length")
	require.InDelta(t, 0.1/1.1, float64(down)/ticks, 0.01, "share of time")
	checkBooks(t, p)
}

func TestOutageEndsWhenTheConfigHasNone(t *testing.T) {
	p := netsim.NewPipe(1, netsim.Config{Burst: netsim.Burst{Start: 1, Length: 1e6}})
	p.Step()
	require.NoError(t, p.Send([]byte{1}))
	require.Zero(t, p.Pending(), "in an outage nothing enters")
	p.SetConfig(netsim.Config{})
	require.NoError(t, p.Send([]byte{2}))
	got, ok := p.Next()
	require.True(t, ok)
	require.Equal(t, []byte{2}, got)
}

func TestPacketsInFlightKeepTheirFate(t *testing.T) {
	p := netsim.NewPipe(1, netsim.Config{Latency: 5})
	require.NoError(t, p.Send([]byte("slow")))
	p.SetConfig(netsim.Config{Loss: 1, Corrupt: 1, Latency: 1})
	require.NoError(t, p.Send([]byte("gone")))
	var got []string
	for range 10 {
		p.Step()
		p.Receive(func(packet []byte) { got = append(got, string(packet)) })
		require.Equal(t, p.Now() >= 5, len(got) == 1)
	}
	require.Equal(t, []string{"slow"}, got)
}

// Changing one setting must not change the effects of the others.
func TestKnobsAreIndependent(t *testing.T) {
	base := netsim.Config{Latency: 5, Jitter: 3, Loss: 0.1, Reorder: 0.1, ReorderBy: 5}
	trace := func(cfg netsim.Config) map[arrival]int {
		m := map[arrival]int{}
		for _, a := range run(t, netsim.NewPipe(23, cfg), 500, 2, 64) {
			m[a]++
		}
		return m
	}
	want := trace(base)

	lossy := base
	lossy.Loss = 0.3
	fewer := trace(lossy)
	require.Less(t, len(fewer), len(want))
	require.Subset(t, want, fewer, "more loss takes some away and touches no other")

	double := base
	double.Duplicate = 0.5
	more := trace(double)
	require.Greater(t, len(more), len(want))
	for a := range want {
		require.Contains(t, more, a, "duplication only adds")
	}

	straight := base
	straight.Reorder = 0
	moved := 0
	now := trace(straight)
	for a := range want {
		if now[a] == 0 {
			moved++
		}
	}
	require.InDelta(t, 0.1*float64(len(want)), moved, 40, "only those held back moved")

	damaged := base
	damaged.MTU = 64
	damaged.Corrupt = 0.2
	p := netsim.NewPipe(23, damaged)
	run := run(t, netsim.NewPipe(23, base), 500, 2, 64)
	// Cut packets have no number: compare the ticks only.
	i := 0
	for seq := range uint64(1000) {
		require.NoError(t, p.Send(numbered(seq, 64)))
		if seq%2 == 1 {
			p.Receive(func([]byte) { require.Equal(t, run[i].tick, p.Now()); i++ })
			p.Step()
		}
	}
	require.Greater(t, i, 800)
	require.Positive(t, p.Stats().Corrupted)
}

func TestSendCopiesAndBuffersAreNotShared(t *testing.T) {
	p := netsim.NewPipe(1, netsim.Config{Duplicate: 1, Latency: 1})
	buf := []byte("first")
	require.NoError(t, p.Send(buf))
	copy(buf, "xxxxx")
	p.Step()
	for range 2 {
		got, ok := p.Next()
		require.True(t, ok)
		require.Equal(t, "first", string(got))
		copy(got, "yyyyy") // allowed, and must not reach the copy
	}
	require.NoError(t, p.Send(nil))
	p.Step()
	got, ok := p.Next()
	require.True(t, ok, "an empty packet is a packet")
	require.Empty(t, got)
}

func TestAskingAnEmptyPipeAgainIsHarmless(t *testing.T) {
	p := netsim.NewPipe(1, netsim.Config{})
	require.NoError(t, p.Send([]byte("first")))
	_, ok := p.Next()
	require.True(t, ok)
	for range 3 {
		_, ok = p.Next()
		require.False(t, ok)
	}
	require.NoError(t, p.Send([]byte("second")))
	require.NoError(t, p.Send([]byte("third")))
	for _, want := range []string{"second", "third"} {
		got, ok := p.Next()
		require.True(t, ok)
		require.Equal(t, want, string(got))
	}
}

func TestSendRefusesWhatExceedsTheMTU(t *testing.T) {
	p := netsim.NewPipe(1, netsim.Config{MTU: 100})
	require.NoError(t, p.Send(make([]byte, 100)))
	err := p.Send(make([]byte, 101))
	require.ErrorIs(t, err, netsim.ErrTooLarge)
	require.EqualError(t, err, "netsim: packet exceeds the MTU: 101 bytes, at most 100 pass")
	require.EqualValues(t, 1, p.Stats().Sent)
	checkBooks(t, p)
}

func TestReceiveLeavesEchoesForTheNextCall(t *testing.T) {
	p := netsim.NewPipe(1, netsim.Config{})
	require.NoError(t, p.Send([]byte("echo")))
	for range 3 {
		calls := 0
		p.Receive(func(packet []byte) {
			calls++
			require.Equal(t, "echo", string(packet))
			require.NoError(t, p.Send(packet)) // the pipe's own buffer, too
			require.Equal(t, "echo", string(packet))
		})
		require.Equal(t, 1, calls)
	}
}

func TestForgottenPipeIsBounded(t *testing.T) {
	p := netsim.NewPipe(1, netsim.Config{Latency: 1000, Duplicate: 0.5})
	packet := []byte{1}
	for range 100_000 {
		require.NoError(t, p.Send(packet))
	}
	require.Equal(t, 65_536, p.Pending())
	require.Positive(t, p.Stats().Dropped)
	checkBooks(t, p)
}

func TestSteadyStateDoesNotAllocate(t *testing.T) {
	cfg := netsim.Hostile.Config(60)
	cfg.MTU = 1400
	p := netsim.NewPipe(8, cfg)
	rng := rand.New(rand.NewPCG(1, 2))
	packet := make([]byte, 1400)
	tick := func() {
		for range 4 {
			if err := p.Send(packet[:rng.IntN(len(packet)+1)]); err != nil {
				t.Fatal(err)
			}
		}
		p.Receive(func([]byte) {})
		p.Step()
	}
	// The busiest moment comes first: far more in flight than later, then a queue that is always
	// full, because 2800 bytes per tick are sent and 2000 can leave.
	for range 500 {
		tick()
	}
	for range 2000 {
		require.NoError(t, p.Send(packet))
	}
	cfg.Bandwidth = 2000
	p.SetConfig(cfg)
	for range 1000 {
		tick()
	}
	// One run of many ticks, because the average over runs would be rounded down. A leak would use up the
	// buffers of the busiest moment, and then allocate in every tick. The runtime may allocate a few times in
	// the background.
	require.Less(t, testing.AllocsPerRun(1, func() {
		for range 20_000 {
			tick()
		}
	}), 100.0)
}

// traceHash hashes every delivery: time, length and bytes.
func traceHash(seed uint64, cfg netsim.Config, ticks int) uint64 {
	p := netsim.NewPipe(seed, cfg)
	h := fnv.New64a()
	var head [16]byte
	var packet [512]byte
	for i := range ticks {
		for j := range 3 {
			size := 8 + (i*31+j*97)%(len(packet)-8)
			binary.LittleEndian.PutUint64(packet[:], uint64(i*3+j))
			if err := p.Send(packet[:size]); err != nil {
				panic(err)
			}
		}
		p.Receive(func(packet []byte) {
			binary.LittleEndian.PutUint64(head[:8], uint64(p.Now()))
			binary.LittleEndian.PutUint64(head[8:], uint64(len(packet)))
			h.Write(head[:])
			h.Write(packet)
		})
		p.Step()
	}
	return h.Sum64()
}

// The constants guarantee that a seed in a bug report means the same trace on every machine and in
// every release of Go. Changing them changes the meaning of every recorded seed, which belongs into
// the changelog.
func TestTraceIsGolden(t *testing.T) {
	for name, want := range map[string]uint64{
		"perfect": 0x1341b98e87508ca5,
		"home":    0xdb0357213305f724,
		"awful":   0xac615e38bcc28fcb,
		"hostile": 0x7acc50884192d95b,
	} {
		profile, err := netsim.ParseProfile(name)
		require.NoError(t, err)
		cfg := profile.Config(60)
		got := traceHash(42, cfg, 2000)
		require.Equal(t, got, traceHash(42, cfg, 2000), "%s: not even twice the same", name)
		require.Equal(t, want, got, "%s: %#x", name, got)
		if name != "perfect" {
			require.NotEqual(t, got, traceHash(43, cfg, 2000), "%s: the seed has no effect", name)
		}
	}
}
