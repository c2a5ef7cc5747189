package interpolation_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/interpolation"
)

type turning struct {
	X, Y, Z float32    `repl:"range=-10000:10000,step=0.01"`
	Facing  [4]float32 `repl:"quat,bits=11"`
}

// A crowd is a client whose n entities have moved for a while, of a server with 20 ticks per second.
type crowd[T any] struct {
	world  ecs.World
	id     ecs.ID
	all    ecs.Mask
	server *replication.Server
	client *replication.Client
	mirror ecs.World
	at     ecs.ID
	play   *interpolation.Interpolation
	down   [][]byte
	peer   *replication.Peer
	n      int
	move   func(v *T, n int)
}

func newCrowd[T any](t testing.TB, n int, move func(v *T, n int)) *crowd[T] {
	c := &crowd[T]{world: ecs.NewWorld(), mirror: ecs.NewWorld(), move: move}
	schema := replication.NewSchema()
	replication.Register[T](schema)
	c.server = replication.NewServer(&c.world, schema, replication.WithTickRate(20))
	c.peer = c.server.Connect(func(packet []byte) error {
		if len(c.down) < cap(c.down) {
			c.down = c.down[:len(c.down)+1]
		} else {
			c.down = append(c.down, nil)
		}
		last := &c.down[len(c.down)-1]
		*last = append((*last)[:0], packet...)
		return nil
	})
	c.client = replication.NewClient(&c.mirror, schema)
	c.client.SetSend(func(packet []byte) error { return c.peer.Receive(packet) })
	c.id, c.at = ecs.ComponentID[T](&c.world), ecs.ComponentID[T](&c.mirror)
	c.all = ecs.All(c.id)
	for range n {
		c.world.NewEntity(ecs.ComponentID[replication.Replicated](&c.world), c.id)
	}
	c.play = interpolation.Attach(c.client)
	for range 60 {
		c.tick(t)
		for range 7 {
			require.NoError(t, c.client.Frame(time.Second/140))
		}
	}
	return c
}

func (c *crowd[T]) tick(t testing.TB) {
	q := c.world.Query(&c.all)
	for q.Next() {
		c.move((*T)(q.Get(c.id)), c.n)
	}
	c.n++
	c.server.Replicate()
	for _, packet := range c.down {
		require.NoError(t, c.client.Receive(packet))
	}
	c.down = c.down[:0]
}

func moveFixed(p *place, n int) { p.X, p.Y, p.Z = float32(n%100), float32(n%90), float32(n%80) }

func moveTurning(p *turning, n int) {
	p.X, p.Y, p.Z = float32(n%100), float32(n%90), float32(n%80)
	p.Facing = [4]float32{float32(n%10) * 0.1, 0, 0, 1}
}

// byHand is a loop as one would write it for a world of its own: each entity has two values, their ticks, and where it
// is between them.
func byHand(n int) (frame func()) {
	type buffer struct {
		from, to          place
		fromTick, inverse float32
	}
	w := ecs.NewWorld()
	id, buffers := ecs.ComponentID[place](&w), ecs.ComponentID[buffer](&w)
	for i := range n {
		e := w.NewEntity(id, buffers)
		*(*buffer)(w.Get(e, buffers)) = buffer{to: place{1, 2, float32(i)}, fromTick: 7, inverse: 0.25}
	}
	filter := ecs.All(id, buffers)
	cached := w.Cache().Register(&filter)
	now := float32(8)
	return func() {
		q := w.Query(&cached)
		for q.Next() {
			p, b := (*place)(q.Get(id)), (*buffer)(q.Get(buffers))
			f := min(max((now-b.fromTick)*b.inverse, 0), 1)
			p.X = b.from.X + (b.to.X-b.from.X)*f
			p.Y = b.from.Y + (b.to.Y-b.from.Y)*f
			p.Z = b.from.Z + (b.to.Z-b.from.Z)*f
		}
	}
}

// fastest returns the least time that a function takes, in nanoseconds per entity. That is what it takes when nothing
// else runs on the machine.
func fastest(runs, n int, fn func()) float64 {
	least := time.Hour
	for range runs {
		start := time.Now()
		fn()
		least = min(least, time.Since(start))
	}
	return float64(least.Nanoseconds()) / float64(n)
}

func BenchmarkInterpolate(b *testing.B) {
	for _, n := range []int{1000, 10000} {
		b.Run(fmt.Sprintf("hand/%d", n), func(b *testing.B) { benchFrames(b, n, byHand(n)) })
		b.Run(fmt.Sprintf("fixed3/%d", n), func(b *testing.B) {
			c := newCrowd(b, n, moveFixed)
			benchFrames(b, n, func() { _ = c.client.Frame(time.Nanosecond) })
		})
		b.Run(fmt.Sprintf("quat/%d", n), func(b *testing.B) {
			c := newCrowd(b, n, moveTurning)
			benchFrames(b, n, func() { _ = c.client.Frame(time.Nanosecond) })
		})
	}
}

func benchFrames(b *testing.B, n int, frame func()) {
	b.ReportAllocs()
	for b.Loop() {
		frame()
	}
	b.ReportMetric(fastest(1000, n, frame), "ns/entity")
}
