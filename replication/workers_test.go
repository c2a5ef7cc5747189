package replication

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/encode"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// goroutine returns the name of the current goroutine.
func goroutine() string {
	var buf [64]byte
	return string(bytes.Fields(buf[:runtime.Stack(buf[:], false)])[1])
}

// askingFilter is a custom filter.
type askingFilter struct {
	id    ecs.ID
	asked func()
}

func (f *askingFilter) Matches(mask *ecs.Mask) bool {
	f.asked()
	return mask.Get(f.id)
}

// playWithWorkers plays a game with peers of all kinds and returns the packets in order of sending,
// and the number of calls of user functions.
func playWithWorkers(t *testing.T, workers, limit, peers, ticks int, seed uint64) (sent [][]byte, calls int) {
	w := ecs.NewWorld()
	s := NewServer(&w, testSchema(), WithSeed(seed), WithWorkers(workers))
	for i := range s.sender.workers.List {
		s.sender.workers.List[i].Limit = limit
	}
	g := newGame(seed, &w, faceOf(s.schema), 90)
	grid := s.NewGrid(20, "tPosition.X", "tPosition.Y")
	set := s.NewEntitySet()
	home := goroutine()
	called := func() { // without locks: the race detector sees calls from other goroutines
		calls++
		if here := goroutine(); here != home { // no FailNow here: it would end a worker
			t.Errorf("called on goroutine %s instead of %s", here, home)
		}
	}
	var ends []*end
	for i := range peers {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		e := connect(s, seed+uint64(i), netsim.Config{Latency: float64(1 + i%6), Jitter: float64(i % 3), Loss: float64(i%4) * 0.05}, WithSeed(uint64(i)+1))
		send := e.peer.out.Send
		e.peer.out.Send = func(p []byte) error {
			called()
			sent = append(sent, append([]byte{byte(i)}, p...))
			if i%7 == 0 && rng.IntN(5) == 0 {
				return errors.New("buffer full")
			}
			return send(p)
		}
		if i%3 == 0 {
			e.peer.SetBudget(500 + 400*i)
		}
		if i%6 == 0 {
			e.peer.SetPriorityFunc(func(entities []ecs.Entity, weights []float32) {
				called()
				for k, entity := range entities {
					weights[k] *= 1 + float32(entity.ID()%5)
				}
			})
		}
		e.peer.SetSendInterval(1 + i%10/8)
		interest := Interest{}
		switch i % 8 {
		case 1:
			interest.Visible = func(e ecs.Entity) bool {
				called()
				return (int(e.ID())+int(s.Tick())/20)%3 > 0
			}
		case 2:
			interest.Grid, interest.Keep = grid, i%16 == 2
		case 3:
			interest.Filter = &askingFilter{g.ids[0], called}
		case 4:
			interest.Sets = []*EntitySet{set}
		}
		e.peer.SetInterest(interest)
		ends = append(ends, e)
	}
	for tick := range ticks {
		g.step()
		if tick%10 == 0 && len(g.entities) > 0 {
			set.Add(g.entities[g.rng.IntN(len(g.entities))])
		}
		for i, e := range ends {
			e.peer.LookFrom(60, float64((tick+10*i)%200-100), 0)
		}
		s.Replicate()
		for _, e := range ends {
			e.step(t)
		}
	}
	if s.sender.workers.List[0].Made == 0 {
		require.Fail(t, "nothing was encoded")
	}
	return sent, calls
}

// TestWorkersSendTheSame: however many workers there are, the send functions get the same packets
// in the same order, and all user functions are called on the goroutine that calls Replicate.
func TestWorkersSendTheSame(t *testing.T) {
	t.Parallel()
	peers, ticks := 40, 200
	if testing.Short() || raceDetector {
		peers, ticks = 24, 80
	}
	seed := seedOf(t)
	want, calls := playWithWorkers(t, 1, encode.MaxCacheBytes, peers, ticks, seed)
	require.NotEmpty(t, want)
	require.Greater(t, calls, len(want))
	for _, n := range []int{-1, 2, 3, 8} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			limit := encode.MaxCacheBytes
			if n < 0 { // with little memory for encoded entries
				n, limit = -n, 1000
			}
			got, gotCalls := playWithWorkers(t, n, limit, peers, ticks, seed)
			require.Equal(t, calls, gotCalls)
			require.Equal(t, len(want), len(got))
			for i := range want {
				if !bytes.Equal(want[i], got[i]) {
					require.FailNow(t, "another packet", "number %d: of peer %d, with one worker of %d", i, got[i][0], want[i][0])
				}
			}
		})
	}
	require.Panics(t, func() { WithWorkers(-1) })
	require.Panics(t, func() { WithWorkers(65) })
}

// TestWorkersConverge: clients understand the packets of several workers.
func TestWorkersConverge(t *testing.T) {
	seed := seedOf(t)
	w := ecs.NewWorld()
	s := NewServer(&w, testSchema(), WithSeed(seed), WithWorkers(3))
	g := newGame(seed, &w, faceOf(s.schema), 40)
	o := newTruth()
	var ends []*end
	for i := range 7 {
		e := connect(s, seed+uint64(i), netsim.Config{Latency: float64(i), Jitter: 1, Loss: 0.05 * float64(i)}, WithSeed(uint64(i)+1))
		if i%2 == 1 {
			e.peer.SetBudget(10_000)
		}
		ends = append(ends, e)
	}
	for range 300 {
		g.step()
		tickAll(t, s, o, ends)
	}
	for _, e := range ends {
		e.link.SetConfig(netsim.Config{Latency: 2})
	}
	requireEqualSoon(t, s, o, ends, 200)
}

// TestWorkersDoNotAllocate: once all buffers have grown, Replicate allocates nothing with workers
// either, nor with budgets, views, intervals and loss.
func TestWorkersDoNotAllocate(t *testing.T) {
	skipAllocationTest(t)
	for _, workers := range []int{1, 3} {
		c := newLoadWorld(t, 500, loadSchema(), WithWorkers(workers))
		for i := range 8 {
			m := c.join(5+i%5, float64(i%4/3)*0.02)
			if i%2 == 1 {
				m.peer.SetInterest(Interest{Visible: func(e ecs.Entity) bool { return int(e.ID())%8 != i }})
			}
			if i%4 == 2 {
				m.peer.SetSendInterval(1 + i)
			}
			if i >= 4 {
				m.peer.SetBudget(20_000 * i)
			}
			if i == 7 {
				m.peer.SetPriorityFunc(func(_ []ecs.Entity, weights []float32) { weights[0] = 2 })
			}
			m.sizes = make([]int, 0, 10_000)
		}
		for range 1000 { // random loads reach their maximum late
			c.tickAll()
		}
		const runs = 100
		total := float64(runs)
		// On a busy machine the runtime makes threads now and then, which counts as well: not in every round.
		for round := 0; round < 5 && total > runs/10; round++ {
			total = 0
			for range runs {
				for i, p := range c.positions {
					c.move(p, i)
				}
				c.answer()
				total += allocsOf(c.server.Replicate)
			}
		}
		t.Logf("%d workers: %v allocations in %d ticks", workers, total, runs)
		require.LessOrEqual(t, total, float64(runs/10))
	}
}

// TestWorkersShareTheSame: however many workers there are, peers that lose packets get the same shared ones, which
// depend on what all peers have in common.
func TestWorkersShareTheSame(t *testing.T) {
	t.Parallel()
	seed := seedOf(t)
	play := func(workers int) (sums []uint32, shared uint64) {
		r := newSharedRig(t, scaleGame(roundsOf(4000, 4000, 2000)), 0, 0, seed, WithWorkers(workers))
		for i := range 14 {
			f := connectFake(t, r.server, uint64(i)+1, 4+i%7, float64(i%3)*0.04)
			f.peer.SetSendInterval(1 + i%5/4)
			send := f.peer.out.Send
			f.peer.out.Send = func(packet []byte) error {
				sums = append(sums, crc32.ChecksumIEEE(packet))
				return send(packet)
			}
			r.fakes, r.acks = append(r.fakes, f), append(r.acks, nil)
		}
		for range ticksOf(150, 90) {
			r.tick()
		}
		r.check(t)
		return sums, r.server.Stats().SharedPackets
	}
	want, shared := play(1)
	require.Greater(t, shared, uint64(len(want)/2))
	for _, n := range []int{2, 5} {
		got, _ := play(n)
		require.Equal(t, want, got, "%d workers", n)
	}
}
