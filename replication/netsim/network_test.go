package netsim_test

import (
	"encoding/binary"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication/netsim"
)

// The tests in a bubble of package synctest have a clock of their own, which moves when all goroutines sleep: there,
// everything is exact.

// arrivals collects what arrives, and when.
type arrivals struct {
	mu    sync.Mutex
	start time.Time
	at    []time.Duration
	data  []string
}

func newArrivals() *arrivals { return &arrivals{start: time.Now()} }

func (a *arrivals) take(packet []byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.at = append(a.at, time.Since(a.start))
	a.data = append(a.data, string(packet))
	return nil
}

func (a *arrivals) all() ([]string, []time.Duration) {
	synctest.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.data, a.at
}

func TestPacketsTakeTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := netsim.NewNetwork(1, netsim.Profile{Latency: 50 * time.Millisecond})
		defer n.Close()
		got := newArrivals()
		path := n.Through(got.take)
		packet := []byte("a")
		require.NoError(t, path.Send(packet))
		packet[0] = 'b' // Send has copied it
		time.Sleep(10 * time.Millisecond)
		require.NoError(t, path.Send(packet))
		require.Equal(t, 2, n.Stats().UnderWay)
		time.Sleep(time.Hour) // an idle path costs nothing, and loses no time
		packet[0] = 'c'
		require.NoError(t, path.Send(packet))
		time.Sleep(50 * time.Millisecond)
		data, at := got.all()
		require.Equal(t, []string{"a", "b", "c"}, data)
		require.Equal(t, []time.Duration{50e6, 60e6, time.Hour + 60e6}, at)
		stats := n.Stats()
		require.Equal(t, uint64(3), stats.Sent)
		require.Equal(t, uint64(3), stats.Delivered)
		require.Zero(t, stats.UnderWay)
	})
}

func TestAPerfectNetworkIsInstant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := netsim.NewNetwork(1, netsim.Profile{})
		defer n.Close()
		got := newArrivals()
		path := n.Through(got.take)
		for range 100 {
			require.NoError(t, path.Send([]byte{1}))
		}
		data, at := got.all()
		require.Len(t, data, 100)
		require.Zero(t, at[99])
	})
}

func TestSetIsEffectiveAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := netsim.NewNetwork(1, netsim.Profile{Latency: 100 * time.Millisecond})
		defer n.Close()
		got := newArrivals()
		path, other := n.Through(got.take), n.Through(got.take)
		require.NoError(t, path.Send([]byte("slow")))
		n.Set(netsim.Profile{Loss: 1})
		require.Equal(t, netsim.Profile{Loss: 1}, n.Profile())
		require.NoError(t, path.Send([]byte("lost")))
		require.NoError(t, other.Send([]byte("lost")))
		n.Set(netsim.Profile{Latency: 20 * time.Millisecond})
		require.NoError(t, path.Send([]byte("fast")))
		time.Sleep(time.Second)
		data, at := got.all()
		require.Equal(t, []string{"fast", "slow"}, data)
		require.Equal(t, []time.Duration{20e6, 100e6}, at)
		require.Equal(t, uint64(2), n.Stats().Lost)
		require.Panics(t, func() { n.Set(netsim.Profile{Loss: 2}) })
	})
}

func TestBandwidthIsPerSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := netsim.NewNetwork(1, netsim.Profile{Bandwidth: 100_000})
		defer n.Close()
		got := newArrivals()
		path := n.Through(got.take)
		for range 20 {
			require.NoError(t, path.Send(make([]byte, 1000)))
		}
		time.Sleep(time.Second)
		data, at := got.all()
		require.Len(t, data, 20)
		require.InDelta(t, 200*time.Millisecond, at[19], 11e6)
	})
}

// Every effect of a profile shows with its share, and two paths differ in what they lose.
func TestANetworkIsAsBadAsItsProfile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := netsim.Mobile
		p.Bandwidth = 0
		n := netsim.NewNetwork(7, p)
		defer n.Close()
		var paths [2]*netsim.Path
		var got [2]*arrivals
		for i := range paths {
			got[i] = newArrivals()
			paths[i] = n.Through(got[i].take)
		}
		const packets = 50_000
		for i := range packets {
			packet := binary.LittleEndian.AppendUint32(nil, uint32(i))
			for _, path := range paths {
				require.NoError(t, path.Send(packet))
			}
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(time.Second)
		stats := n.Stats()
		require.Equal(t, uint64(2*packets), stats.Sent)
		require.InDelta(t, 0.02, float64(stats.Lost)/(2*packets), 0.003)
		require.InDelta(t, 0.01, float64(stats.Outage)/(2*packets), 0.006)
		require.InDelta(t, 0.005, float64(stats.Duplicated)/(2*packets), 0.002)
		require.Positive(t, stats.Reordered)
		require.Equal(t, stats.Sent+stats.Duplicated, stats.Delivered+stats.Lost+stats.Outage+stats.Dropped)
		a, _ := got[0].all()
		b, _ := got[1].all()
		require.NotEqual(t, strings.Join(a, ""), strings.Join(b, ""), "the paths have the same fate")
	})
}

func TestPathsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := netsim.NewNetwork(1, netsim.Profile{Latency: time.Second, Duplicate: 0.5})
		defer n.Close()
		path := n.Through(func([]byte) error { return nil })
		for range 5000 {
			require.NoError(t, path.Send([]byte{1}))
		}
		stats := n.Stats()
		require.Equal(t, 1024, stats.UnderWay)
		require.Greater(t, stats.Dropped, uint64(3000))
	})
}

func TestAClosedPathEndsWhenItIsEmpty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := netsim.NewNetwork(1, netsim.Profile{Latency: 50 * time.Millisecond})
		defer n.Close()
		got := newArrivals()
		path, idle := n.Through(got.take), n.Through(got.take)
		require.NoError(t, path.Send([]byte("goodbye")))
		done := path.Close()
		require.Equal(t, done, path.Close())
		require.ErrorIs(t, path.Send([]byte("late")), netsim.ErrClosed)
		require.Equal(t, 2, n.Stats().Paths)
		<-idle.Close()
		require.Equal(t, 1, n.Stats().Paths)
		<-done
		data, at := got.all()
		require.Equal(t, []string{"goodbye"}, data)
		require.Equal(t, []time.Duration{50e6}, at)
		stats := n.Stats()
		require.Zero(t, stats.Paths)
		require.Equal(t, uint64(1), stats.Delivered, "the counters of a path that ended stay")
	})
}

// A path may end itself, and its network be used, while it delivers.
func TestSendMayUseTheNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := netsim.NewNetwork(1, netsim.Profile{Latency: time.Millisecond})
		defer n.Close()
		var path *netsim.Path
		var done <-chan struct{}
		hops := 0
		path = n.Through(func(packet []byte) error {
			if hops++; hops == 10 {
				done = path.Close()
				n.Set(netsim.Profile{})
				require.Equal(t, 1, n.Stats().Paths, "not ended while send runs")
				return nil
			}
			return path.Send(packet)
		})
		require.NoError(t, path.Send([]byte{1}))
		time.Sleep(time.Second)
		synctest.Wait()
		<-done
		require.Equal(t, 10, hops)
	})
}

func TestErrorsOfSendComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := netsim.NewNetwork(1, netsim.Profile{})
		defer n.Close()
		broken := errors.New("the cable is pulled")
		path := n.Through(func([]byte) error { return broken })
		require.NoError(t, path.Send([]byte{1}))
		synctest.Wait()
		require.Equal(t, broken, path.Send([]byte{2}))
		require.NoError(t, path.Send([]byte{3}), "once")
		synctest.Wait()
		require.Equal(t, uint64(2), n.Stats().SendErrors)
		require.Equal(t, uint64(2), n.Stats().Sent)
	})
}

func TestACloseLosesWhatIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := netsim.NewNetwork(1, netsim.Profile{Latency: 50 * time.Millisecond})
		got := newArrivals()
		path := n.Through(got.take)
		require.NoError(t, path.Send([]byte("lost")))
		n.Close()
		n.Close()
		<-path.Close()
		require.ErrorIs(t, path.Send([]byte("late")), netsim.ErrClosed)
		late := n.Through(got.take)
		require.ErrorIs(t, late.Send([]byte("late")), netsim.ErrClosed)
		<-late.Close()
		n.Set(netsim.LAN)
		time.Sleep(time.Second)
		data, _ := got.all()
		require.Empty(t, data)
		stats := n.Stats()
		require.Equal(t, uint64(1), stats.Dropped)
		require.Zero(t, stats.Paths)
	})
}

func TestThroughNeedsASendFunction(t *testing.T) {
	n := netsim.NewNetwork(1, netsim.Profile{})
	defer n.Close()
	require.PanicsWithValue(t, "netsim: Network.Through: send is nil; give the function that packets shall reach",
		func() { n.Through(nil) })
}

func TestANetworkAllocatesNothing(t *testing.T) {
	n := netsim.NewNetwork(1, netsim.Profile{Loss: 0.1, Duplicate: 0.1, Corrupt: 0.1})
	defer n.Close()
	var arrived atomic.Int64
	path := n.Through(func([]byte) error {
		arrived.Add(1)
		return nil
	})
	packet := make([]byte, 1200)
	play := func(packets int) {
		for range packets {
			if err := path.Send(packet); err != nil {
				t.Fatal(err)
			}
			for n.Stats().UnderWay > 100 {
				runtime.Gosched()
			}
		}
	}
	play(2000)
	require.Less(t, testing.AllocsPerRun(1, func() { play(20_000) }), 200.0)
	require.Positive(t, arrived.Load())
}

// By the real clock, with everything at once, from many goroutines.
func TestTheRealClock(t *testing.T) {
	n := netsim.NewNetwork(1, netsim.Profile{Latency: 20 * time.Millisecond, Jitter: 10 * time.Millisecond})
	var arrived, early atomic.Int64
	start := time.Now()
	var senders sync.WaitGroup
	for range 8 {
		senders.Go(func() {
			path := n.Through(func(packet []byte) error {
				sent := time.Duration(binary.LittleEndian.Uint64(packet))
				if time.Since(start)-sent < 9*time.Millisecond { // 10 less the precision
					early.Add(1)
				}
				arrived.Add(1)
				return nil
			})
			for i := range 50 {
				now := binary.LittleEndian.AppendUint64(nil, uint64(time.Since(start)))
				if err := path.Send(now); err != nil {
					t.Error(err)
				}
				if i%10 == 0 {
					p := n.Profile()
					n.Set(p)
				}
				time.Sleep(time.Millisecond)
			}
			<-path.Close()
		})
	}
	senders.Wait()
	require.Equal(t, int64(400), arrived.Load())
	require.Zero(t, early.Load(), "packets that came before their time")
	require.Zero(t, n.Stats().Paths)
	n.Close()
}
