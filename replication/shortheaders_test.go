package replication

import (
	"fmt"
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
)

// TestShortHeadersAreUsed in steady play: 6 bytes with the checksum, and a byte for the tick after a pause. They are
// long until the client has the present interval.
func TestShortHeadersAreUsed(t *testing.T) {
	forms := func(x *fixture, n int, move func()) (counts [3]int) {
		for range n {
			move()
			down := x.replicate()
			for _, p := range down {
				switch body := p[wire.ChecksumSize:]; {
				case !wire.IsState(body):
				case body[0]>>7 == 0:
					counts[wire.HeaderLong]++
				case body[0]>>6 == 3:
					counts[wire.HeaderImplied]++
				default:
					counts[wire.HeaderShort]++
				}
			}
			x.deliver(down...)
			x.answer(x.apply()...)
		}
		return counts
	}
	x := connectedWire(t, testSchema())
	position := ecs.ComponentID[tPosition](x.world)
	e := x.spawn(position)
	n := 0
	move := func() {
		n++
		(*tPosition)(x.world.Get(e, position)).X = float32(n % 7)
	}
	x.rounds(10)
	for range 5 {
		move()
		x.round()
	}
	require.Equal(t, [3]int{wire.HeaderImplied: 200}, forms(x, 200, move))
	x.rounds(3)
	require.Equal(t, [3]int{wire.HeaderShort: 1, wire.HeaderImplied: 49}, forms(x, 50, move))
	x.peer.SetSendInterval(2)
	require.Equal(t, [3]int{wire.HeaderLong: 1, wire.HeaderImplied: 49}, forms(x, 100, move))
	for range 6 { // they are lost
		move()
		x.replicate()
	}
	x.peer.SetSendInterval(5)
	x.peer.SetSendInterval(2) // no tick had the other one
	require.Equal(t, [3]int{wire.HeaderImplied: 25}, forms(x, 50, move))
	x.peer.SetSendInterval(1)
	for range 400 { // they are lost
		move()
		x.replicate()
	}
	require.NotZero(t, forms(x, 200, move)[wire.HeaderLong])
	require.Equal(t, [3]int{wire.HeaderImplied: 20}, forms(x, 20, move))
	x.requireEqual()
}

// TestPacketsThatComeSecondsLate: packets that arrive after hundreds of later ones, once or twice, are never taken
// for others, in either coding, with and without checksums, across the wrap of ticks and of the low bits of sequences, with budgets and
// intervals that make ticks irregular.
func TestPacketsThatComeSecondsLate(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
	ticks := ticksOf(4000, 900)
	seed := seedOf(t)
	for _, options := range [][]ServerOption{nil, {WithoutChecksum()}} {
		for _, coding := range []Coding{Packed, Compact} {
			t.Run(fmt.Sprint(coding, len(options)), func(t *testing.T) {
				w := ecs.NewWorld()
				s := NewServer(&w, testSchema(), append(options, WithSeed(seed), withCoding(coding), WithMTU(150),
					replicationtest.FirstTick(1<<32-300), replicationtest.FirstSequence(1<<16-300))...)
				g := newGame(seed, &w, faceOf(s.schema), 12)
				o := newTruth()
				var ends []*end
				for i := range uint64(3) {
					e := connect(s, seed+i, netsim.Config{
						Latency: 2, Loss: 0.05, Duplicate: 0.3, Reorder: 0.3, ReorderBy: 700,
					}, WithSeed(seed+i+1))
					ends = append(ends, e)
				}
				ends[1].peer.SetBudget(3000)
				refused := uint64(0)
				for tick := range ticks {
					if g.step(); tick%200 == 150 {
						ends[2].peer.SetSendInterval(1 + tick/200%3)
					}
					tickAll(t, s, o, ends)
				}
				for _, e := range ends {
					refused += e.client.Stats().RefusedPackets
					e.link.SetConfig(netsim.Config{})
				}
				require.Equal(t, options == nil, refused > 0, "packets that a checksum recognised as late: %d", refused)
				requireEqualSoon(t, s, o, ends, 900)
			})
		}
	}
}

// TestManyPacketsATickMayOvertakeEachOther: the more packets a tick takes, the more of them overtake a late one. Hardly any
// is taken for another one and refused.
func TestManyPacketsATickMayOvertakeEachOther(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
	for _, packets := range []int{4, 16} {
		seed := seedOf(t)
		w := ecs.NewWorld()
		s := NewServer(&w, testSchema(), WithSeed(seed), WithMTU(150))
		position, marker := ecs.ComponentID[tPosition](&w), ReplicatedID(&w)
		var entities []ecs.Entity
		for range 50 * packets {
			entities = append(entities, w.NewEntity(position, marker))
		}
		o := newTruth()
		e := connect(s, seed, netsim.Config{Latency: 1, Jitter: 4}, WithSeed(seed+1))
		short := 0
		send := e.peer.out.Send
		e.peer.out.Send = func(p []byte) error {
			if wire.IsState(p[wire.ChecksumSize:]) && p[wire.ChecksumSize]>>7 == 1 {
				short++
			}
			return send(p)
		}
		for tick := range 200 {
			for i, entity := range entities {
				(*tPosition)(w.Get(entity, position)).X = float32((i*7 + tick*tick) % 97)
			}
			tickAll(t, s, o, []*end{e})
		}
		t.Logf("%d of %d packets have a short header", short, e.peer.Stats().Packets)
		require.LessOrEqual(t, e.client.Stats().RefusedPackets, e.peer.Stats().Packets/500)
		if packets == 4 {
			require.Greater(t, short, 800)
		}
		e.link.SetConfig(netsim.Config{})
		requireEqualSoon(t, s, o, []*end{e}, 100)
	}
}
