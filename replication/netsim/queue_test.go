package netsim_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication/netsim"
)

func TestBandwidthSpreadsABurstOverTicks(t *testing.T) {
	p := netsim.NewPipe(1, netsim.Config{Bandwidth: 1000, Latency: 2})
	// Ten packets of 300 bytes at once: 3 per tick fit, and the rest of a tick with packets waiting
	// goes to the next packet: 3, 3, 4.
	for seq := range uint64(10) {
		require.NoError(t, p.Send(numbered(seq, 300)))
	}
	var perTick []int
	for range 6 {
		n := 0
		p.Receive(func([]byte) { n++ })
		perTick = append(perTick, n)
		p.Step()
	}
	require.Equal(t, []int{0, 0, 3, 3, 4, 0}, perTick)
}

func TestUnusedBandwidthIsNotSavedUp(t *testing.T) {
	p := netsim.NewPipe(1, netsim.Config{Bandwidth: 100})
	for range 50 {
		p.Step()
	}
	for range 3 {
		require.NoError(t, p.Send(make([]byte, 100)))
	}
	n := 0
	p.Receive(func([]byte) { n++ })
	require.Equal(t, 1, n)
	require.Equal(t, 2, p.Pending())
}

func TestPacketLargerThanATickTakesSeveral(t *testing.T) {
	p := netsim.NewPipe(1, netsim.Config{Bandwidth: 100, QueueLimit: 1})
	require.NoError(t, p.Send(make([]byte, 1200)), "larger than the limit, but the queue is empty")
	require.NoError(t, p.Send(make([]byte, 10)), "dropped: the queue is not")
	require.EqualValues(t, 1, p.Stats().Dropped)
	for p.Now() < 11 {
		_, ok := p.Next()
		require.False(t, ok, "tick %d", p.Now())
		p.Step()
	}
	got, ok := p.Next()
	require.True(t, ok)
	require.Len(t, got, 1200)
}

func TestQueueDropsItsTail(t *testing.T) {
	p := netsim.NewPipe(1, netsim.Config{Bandwidth: 100, QueueLimit: 500})
	for seq := range uint64(10) {
		require.NoError(t, p.Send(numbered(seq, 100)))
	}
	checkBooks(t, p)
	require.EqualValues(t, 4, p.Stats().Dropped)
	var got []uint64
	for range 10 {
		p.Receive(func(packet []byte) { got = append(got, uint64(packet[0])) })
		p.Step()
	}
	require.Equal(t, []uint64{0, 1, 2, 3, 4, 5}, got, "one at once, five waited, the rest was dropped")

	for seq := range uint64(6) {
		require.NoError(t, p.Send(numbered(seq, 100)))
	}
	require.EqualValues(t, 4, p.Stats().Dropped, "the queue has drained: as much fits as before")
}

func TestTighteningTheLimitHoldsWithinTheTick(t *testing.T) {
	p := netsim.NewPipe(1, netsim.Config{Bandwidth: 1000})
	p.SetConfig(netsim.Config{Bandwidth: 100})
	for range 3 {
		require.NoError(t, p.Send(make([]byte, 100)))
	}
	n := 0
	p.Receive(func([]byte) { n++ })
	require.Equal(t, 1, n)
}

func TestLiftingTheLimitReleasesTheQueue(t *testing.T) {
	p := netsim.NewPipe(1, netsim.Config{Bandwidth: 10})
	for seq := range uint64(20) {
		require.NoError(t, p.Send(numbered(seq, 8)))
	}
	p.SetConfig(netsim.Config{})
	n := 0
	p.Receive(func(packet []byte) { require.EqualValues(t, n, packet[0]); n++ })
	require.Equal(t, 20, n)
}

func TestDefaultQueueLimit(t *testing.T) {
	p := netsim.NewPipe(1, netsim.Config{Bandwidth: 1})
	for range 2 * 65_536 / 1024 {
		require.NoError(t, p.Send(make([]byte, 1024)))
	}
	require.Equal(t, 65_536/1024, p.Pending())
}

// The oracle numbers the bytes of the line: tick k carries those from k·bandwidth on, and a packet
// has left with its last byte.
func TestBandwidthMatchesTheByteLine(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 0))
		bandwidth := 1 + rng.IntN(400)
		p := netsim.NewPipe(seed, netsim.Config{Bandwidth: bandwidth, QueueLimit: 1 << 20})
		var want, got []arrival
		var seq uint64
		end := 0 // of the last packet on the line
		for tick := range 300 {
			for range rng.IntN(4) {
				size := 8 + rng.IntN(250)
				require.NoError(t, p.Send(numbered(seq, size)))
				end = max(end, tick*bandwidth) + size
				want = append(want, arrival{seq, int64((end - 1) / bandwidth)})
				seq++
			}
			p.Receive(func(packet []byte) {
				got = append(got, arrival{uint64(packet[0]) | uint64(packet[1])<<8, p.Now()})
			})
			p.Step()
		}
		require.NotEmpty(t, got)
		require.Equal(t, want[:len(got)], got, "seed %d", seed)
		require.Equal(t, len(want)-len(got), p.Pending(), "seed %d", seed)
		for _, a := range want[len(got):] {
			require.GreaterOrEqual(t, a.tick, int64(300), "seed %d", seed)
		}
	}
}
