package replication

import (
	"slices"
	"testing"
	"time"

	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// joinWork sets the work of joining in a tick.
func joinWork(n int) ServerOption {
	return config.ServerFunc(func(o *config.ServerOptions) { o.JoinWork = n })
}

type joinGreeting struct{ N int32 }

// newJoinRig returns a world of 20,000 entities of which few move, with 16 players that have everything.
func newJoinRig(t *testing.T) *sharedRig {
	r := &sharedRig{world: newScaleWorld(scaleLoad{20_000, 200, 4}, 1), ticks: 16}
	schema := scaleSchema()
	RegisterMessage[joinGreeting](schema)
	r.server = NewServer(&r.world.ecs, schema, WithSeed(1))
	r.connect(t, 16, 0)
	for range 100 {
		r.tick()
	}
	return r
}

// TestJoinsOfOneMomentShareTheirWork: of what clients are sent that join at once, nearly everything is in shared packets,
// and a tick has little of it.
func TestJoinsOfOneMomentShareTheirWork(t *testing.T) {
	oneGoroutine(t)
	t.Parallel()
	for _, c := range []struct{ joins, ticks int }{{16, 60}, {64, 150}} {
		r := newJoinRig(t)
		r.connect(t, c.joins, 0)
		newcomers := r.fakes[16:]
		before, encoded, most := r.server.Stats(), r.server.Stats().Encoded, uint64(0)
		ticks, complete := 0, 0
		for ; complete < c.joins; ticks++ {
			require.Less(t, ticks, c.ticks)
			r.tick()
			now := r.server.Stats().Encoded
			most, encoded, complete = max(most, now-encoded), now, 0
			for _, f := range newcomers {
				if f.peer.acked.Join.Complete {
					complete++
				}
			}
		}
		packets, full := uint64(0), uint64(0)
		for _, f := range newcomers {
			s := f.peer.Stats()
			packets, full = packets+s.Packets, full+s.FullStates
			require.Less(t, s.FullStates, uint64(20_000*11/10), "what moves is not sent in full again and again")
			require.Zero(t, s.OverBudget)
		}
		require.Less(t, most, uint64(4000), "entities encoded in a tick")
		require.Greater(t, r.server.Stats().SharedPackets-before.SharedPackets, packets*8/10)
		require.Less(t, r.server.Stats().Encoded-before.Encoded, uint64(c.ticks*4000))
		r.check(t)
	}
}

// TestPlayersDoNotNoticeJoins: the longest tick while 16 or 64 clients join a world of 20,000 is at most 4 times the
// usual one. Each tick's CPU time is the least of several plays, since nothing but the tick itself can make it shorter.
func TestPlayersDoNotNoticeJoins(t *testing.T) {
	if testing.Short() || raceDetector {
		t.Skip("takes some seconds")
	}
	for _, joins := range []int{16, 64} {
		const before, after = 40, 160
		var times [before + after]time.Duration
		ratio := 0.0
		for play := 0; play < 3 || ratio > 4 && play < 15; play++ {
			r := newJoinRig(t)
			for i := range times {
				if i == before {
					r.connect(t, joins, 0)
				}
				used := r.used()
				r.tick()
				if d := r.used() - used; play == 0 || d < times[i] {
					times[i] = d
				}
			}
			usual := slices.Clone(times[:before])
			slices.Sort(usual)
			ratio = float64(slices.Max(times[before:])) / float64(usual[before/2])
		}
		t.Logf("%d joins: %.1f times the usual tick", joins, ratio)
		require.LessOrEqual(t, ratio, 4.0, "%d joins", joins)
	}
}

// TestJoinsOfOtherKindsAreSpread: also what can't be shared takes a bounded part of a tick, and all of it arrives.
func TestJoinsOfOtherKindsAreSpread(t *testing.T) {
	oneGoroutine(t)
	t.Parallel()
	all := Interest{Visible: func(ecs.Entity) bool { return true }}
	for _, c := range []struct {
		name        string
		begin       func(p *Peer)
		most, ticks int // entities sent in a tick, ticks until all is there
		opts        []PeerOption
	}{
		{"interest", func(p *Peer) { p.SetInterest(all) }, 7000, 120, nil},
		{"budget", func(p *Peer) { p.SetBudget(20_000_000) }, 7000, 120, nil},
		{"interval", func(p *Peer) { p.SetSendInterval(3) }, 40_000, 120, nil},
		{"compact", func(*Peer) {}, 2000, 450, []PeerOption{WithCoding(Compact)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newJoinRig(t)
			for range 16 {
				r.fakes = append(r.fakes, connectFake(t, r.server, uint64(len(r.fakes)), 6, 0.01, c.opts...))
				r.acks = append(r.acks, nil)
				c.begin(r.fakes[len(r.fakes)-1].peer)
			}
			newcomers := r.fakes[16:]
			most, last := uint64(0), uint64(0)
			for complete, ticks := 0, 0; complete < len(newcomers); ticks++ {
				require.Less(t, ticks, c.ticks)
				r.tick()
				full := uint64(0)
				complete = 0
				for _, f := range newcomers {
					full += f.peer.Stats().FullStates
					if f.peer.acked.Join.Complete {
						complete++
					}
				}
				most, last = max(most, full-last), full
			}
			require.LessOrEqual(t, most, uint64(c.most))
		})
	}
}

// TestMessagesWaitForAJoinThatWaits: what the server sends a client when it connects arrives after the world, also if
// the client waits for its first tick, and if the world takes many ticks.
func TestMessagesWaitForAJoinThatWaits(t *testing.T) {
	oneGoroutine(t)
	for _, entities := range []int{300, 3000} {
		schema := NewSchema()
		Register[tHealth](schema)
		RegisterMessage[joinGreeting](schema)
		w := ecs.NewWorld()
		s := NewServer(&w, schema, WithSeed(1), joinWork(2000))
		s.OnConnect(func(p *Peer) { require.NoError(t, SendToClient(p, joinGreeting{7})) })
		for range entities {
			w.NewEntity(ecs.ComponentID[tHealth](&w), ReplicatedID(&w))
		}
		s.Replicate()
		greeted := 0
		var ends []*end
		for n := range uint64(8) {
			e := connect(s, n, netsim.Config{Latency: 2, Loss: 0.05}, WithSeed(n+1))
			OnServerMessage(e.client, func(joinGreeting) {
				require.EqualValues(t, entities, e.client.Stats().Spawns)
				greeted++
			})
			ends = append(ends, e)
		}
		waited := 0
		for ticks := 0; greeted < len(ends); ticks++ {
			require.Less(t, ticks, 600)
			s.Replicate()
			for _, e := range ends {
				e.step(t)
				if e.peer.Connected() && !e.peer.out.Joining.Begun {
					waited++
				}
			}
		}
		require.NotZero(t, waited)
	}
}

// TestLaterJoinsDoNotDelayEarlierOnes: the first of a row of clients with send intervals, which are sent state in
// different ticks, gets on while others follow.
func TestLaterJoinsDoNotDelayEarlierOnes(t *testing.T) {
	oneGoroutine(t)
	t.Parallel()
	for _, every := range []int{1000, 3, 6} {
		r := newJoinRig(t)
		first, ticks := len(r.fakes), 0
		for ; len(r.fakes) == first || !r.fakes[first].peer.acked.Join.Complete; ticks++ {
			require.Less(t, ticks, 55, "one every %d ticks", every)
			if ticks%every == 0 {
				r.connect(t, 1, 0)
				r.fakes[len(r.fakes)-1].peer.SetSendInterval(3)
			}
			r.tick()
		}
		t.Logf("one every %d ticks: %d ticks", every, ticks)
	}
}
