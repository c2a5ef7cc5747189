package predict

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/replication"
)

// Body, Spin and Health have 40 bytes and ten fields.
type (
	Body struct {
		X, Y, Z, VX, VY, VZ float32 `repl:"range=-1000:1000,step=0.01"`
	}
	Spin struct {
		Yaw  float32 `repl:"angle,bits=10"`
		Rate float32 `repl:"range=-10:10,step=0.01"`
	}
	Health struct {
		HP, Shield float32 `repl:"range=0:100,step=0.1"`
	}
)

// crowd is a client that predicts so many entities of three components.
func crowd(tb testing.TB, n int) *play {
	r := &rules{extra: func(s *replication.Schema, m *Model[Move]) {
		replication.Register[Body](s)
		replication.Register[Spin](s)
		replication.Register[Health](s)
		State[Body](m)
		State[Spin](m)
		State[Health](m)
	}}
	p := newPlay(tb, setting{seed: 1, oneWay: 75}, r)
	w := &p.world
	for range n {
		e := w.NewEntity(ecs.ComponentID[Body](w), ecs.ComponentID[Spin](w), ecs.ComponentID[Health](w),
			ecs.ComponentID[replication.Replicated](w))
		get[Body](w, e).X = p.rng.Float32()
		p.host.Own(e, p.peer)
	}
	p.run(10)
	require.GreaterOrEqual(tb, p.predict.Stats().Predicted, n)
	return p
}

func perEntity(b *testing.B, name string, n int, fn func()) (ns float64) {
	b.Run(name, func(b *testing.B) {
		b.ReportAllocs()
		begin := time.Now()
		for range b.N {
			fn()
		}
		ns = float64(time.Since(begin).Nanoseconds()) / float64(b.N) / float64(n)
		b.ReportMetric(ns, "ns/entity")
	})
	return ns
}

func BenchmarkPrediction(b *testing.B) {
	const n = 1000
	p := crowd(b, n)
	s := p.predict.sim
	s.inputs.advance(s.newest)
	perEntity(b, "save", n, func() { s.save(s.newest) })
	perEntity(b, "restore", n, func() { s.load(s.newest) })
	perEntity(b, "compare/new", n, func() {
		for i := range s.known {
			s.known[i].any = false
		}
		var from earliest
		s.judge(s.newest, &from)
	})
	perEntity(b, "compare/old", n, func() {
		var from earliest
		s.judge(s.newest, &from)
	})
	perEntity(b, "resimulate", 1, func() {
		now := s.newest
		s.rewind(now - 24)
		s.simulate(now)
	})
	perEntity(b, "draw", n, func() { p.predict.drawing.draw(p.client.PredictionTime(), time.Millisecond) })
}
