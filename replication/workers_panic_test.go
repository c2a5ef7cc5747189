package replication

import (
	"fmt"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// TestSendFunctionsRunOnTheCallersGoroutine whatever is sent and however few peers there are. So
// the caller of Replicate can recover a panic of a send function, and the game can go on.
func TestSendFunctionsRunOnTheCallersGoroutine(t *testing.T) {
	t.Parallel()
	for _, workers := range []int{1, 2, 4, 64} {
		for peers := 1; peers <= 5; peers += 2 {
			t.Run(fmt.Sprint(workers, " workers, ", peers, " peers"), func(t *testing.T) {
				seed := seedOf(t)
				w := ecs.NewWorld()
				s := NewServer(&w, messageSchema(), WithSeed(seed), WithWorkers(workers), WithStateHash(20))
				g := newGame(seed, &w, faceOf(s.schema), 30)
				home, sent, upset := goroutine(), 0, false
				var ends []*end
				for i := range peers {
					e := connect(s, seed+uint64(i), netsim.Config{Latency: 1}, WithSeed(uint64(i)+1))
					send := e.peer.out.Send
					e.peer.out.Send = func(p []byte) error {
						sent++
						if here := goroutine(); here != home { // no FailNow here: it would end a worker
							t.Errorf("called on goroutine %s instead of %s", here, home)
							return send(p)
						}
						if upset {
							panic("the user's")
						}
						return send(p)
					}
					OnServerMessage(e.client, func(mHit) {})
					ends = append(ends, e)
				}
				o := newTruth()
				play := func(ticks int, moves bool) {
					for range ticks {
						if moves {
							g.step()
							require.NoError(t, SendToAll(s, mHit{}))
						}
						tickAll(t, s, o, ends)
					}
				}
				w.NewEntity(ReplicatedID(&w)) // something to hash
				play(40, true)
				play(200, false)
				require.NotZero(t, ends[0].peer.Stats().Hashes)
				require.NotZero(t, ends[0].peer.Stats().MessagesReceived+ends[0].client.Stats().MessagesReceived)
				for range 10 {
					g.step()
					w.NewEntity(ReplicatedID(&w)) // a state to send
					upset = true
					require.PanicsWithValue(t, "the user's", s.Replicate)
					o.record(s)
					upset = false
					for _, e := range ends {
						e.step(t)
					}
				}
				play(100, true)
				requireEqualSoon(t, s, o, ends, 200)
				for i := range s.sender.workers.List {
					require.Less(t, len(s.sender.workers.List[i].Box.Queued), 100, "packets of ticks before")
				}
				for _, e := range ends {
					before := sent
					e.peer.Disconnect(Reason{})
					require.Greater(t, sent, before)
				}
			})
		}
	}
}

// TestATickEndsAfterAnyPanic: the changes of such a tick are not changes of the next one, which a
// peer may have acknowledged already.
func TestATickEndsAfterAnyPanic(t *testing.T) {
	t.Parallel()
	seed := seedOf(t)
	for workers := 1; workers <= 3; workers++ {
		for play := range uint64(10) {
			w := ecs.NewWorld()
			s := NewServer(&w, testSchema(), WithSeed(seed), WithWorkers(workers))
			g := newGame(seed+play, &w, faceOf(s.schema), 30)
			var ends []*end
			upset := false
			for i := range uint64(3) {
				e := connect(s, seed+i, netsim.Config{Latency: float64(i), Loss: 0.1}, WithSeed(i+1))
				send := e.peer.out.Send
				e.peer.out.Send = func(p []byte) error {
					if i == play%3 && upset {
						panic("the user's")
					}
					return send(p)
				}
				ends = append(ends, e)
			}
			o := newTruth()
			for tick := range 100 {
				g.step()
				upset = tick > 20 && g.rng.IntN(4) == 0
				func() {
					defer func() {
						if x := recover(); x != nil {
							require.Equal(t, "the user's", x)
						}
					}()
					s.Replicate()
				}()
				upset = false
				require.Equal(t, s.snap.Tick, s.snap.Slots.Recent.Now)
				for _, word := range s.snap.Slots.Changed {
					require.Zero(t, word)
				}
				o.record(s)
				for _, e := range ends {
					e.step(t)
					e.check(t, s, o)
				}
			}
			requireEqualSoon(t, s, o, ends, 200)
		}
	}
}
