package replication_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
)

type (
	shownSpeed struct{ X, Y float32 }
	shownPlace struct {
		X, Y float32 `repl:"range=-10:10,step=0.1"`
	}
	shownWheel struct {
		Tilt  float32    `repl:"range=-1:1,step=0.1,hold"`
		Turns uint8      `repl:"counter,cut"`
		On    bool       `repl:"cut,hold"`
		Quat  [4]float32 `repl:"quat,bits=9,hold,cut"`
		At    [2]float64 `repl:"place,hold"`
		Car   ecs.Entity `repl:"cut"`
	}
	shownSeat struct {
		ecs.Relation `repl:"cut"`
	}
)

// TestTheTextHasHowComponentsAreShown: two ends that differ in it refuse each other. What makes no difference is not in
// it.
func TestTheTextHasHowComponentsAreShown(t *testing.T) {
	s := replication.NewSchema()
	replication.Register[shownSpeed](s, replication.Newest())
	replication.Register[shownPlace](s, replication.Snap(2.5), replication.Hermite[shownSpeed](1./20),
		replication.Field("X", "range=-10:10,step=0.1"))
	replication.Register[shownWheel](s)
	replication.Register[shownSeat](s)
	require.Equal(t, `arche-replicate schema 1
component shownSpeed newest
shownSpeed.X float32
shownSpeed.Y float32
component shownPlace snap=2.5 hermite=0.05,shownSpeed
shownPlace.X float32 range=-10:10,step=0.1
shownPlace.Y float32 range=-10:10,step=0.1
component shownWheel
shownWheel.Tilt float32 range=-1:1,step=0.1,hold
shownWheel.Turns uint8 counter,cut
shownWheel.On bool cut
shownWheel.Quat [4]float32 quat,bits=9,hold,cut
shownWheel.At [2]float64 hold,place
shownWheel.Car entity cut
component shownSeat
shownSeat.Relation relation cut
`, s.Text())

	same := func(a, b string) {
		texts := [2]string{}
		for i, tag := range []string{a, b} {
			s := replication.NewSchema()
			replication.Register[shownPlace](s, replication.Field("X", tag))
			texts[i] = s.Text()
		}
		require.Equal(t, texts[0], texts[1], "%s and %s", a, b)
	}
	same("range=-10:10,step=0.1,jump", "range=-10:10,step=0.1,jump,hold")
	same("raw,jump", "hold")
	s.Tune("shownWheel.Tilt=01")
	require.Contains(t, s.Text(), "shownWheel.Tilt float32 range=-1:1,step=0.1,hold,orders=01\n")
}

// TestEndsThatShowDifferentlyRefuseEachOther, with the line that differs.
func TestEndsThatShowDifferentlyRefuseEachOther(t *testing.T) {
	for _, c := range []struct {
		opts []replication.ComponentOption
		line string
	}{
		{[]replication.ComponentOption{replication.Snap(3)}, "component shownPlace snap=3"},
		{[]replication.ComponentOption{replication.Newest()}, "component shownPlace newest"},
		{[]replication.ComponentOption{replication.Field("Y", "range=-10:10,step=0.1,hold")}, "shownPlace.Y float32 range=-10:10,step=0.1,hold"},
	} {
		here, there := replication.NewSchema(), replication.NewSchema()
		replication.Register[shownPlace](here, c.opts...)
		replication.Register[shownPlace](there)
		world, other := ecs.NewWorld(), ecs.NewWorld()
		server := replication.NewServer(&world, there)
		var client *replication.Client
		peer := server.Connect(func(packet []byte) error { return client.Receive(packet) })
		client = replication.NewClientWith(&other, here, peer.Receive)
		var err error
		for range 40 {
			server.Replicate()
			client.Advance(time.Second / 20)
			if err = client.Apply(); err != nil {
				break
			}
		}
		var mismatch *replication.SchemaError
		require.ErrorAs(t, err, &mismatch)
		require.Equal(t, c.line, mismatch.Client)
	}
}

// TestHowComponentsAreShownIsChecked when they are registered.
func TestHowComponentsAreShownIsChecked(t *testing.T) {
	type plain struct{ N uint8 }
	type wide struct {
		At [4]float32 `repl:"place"`
	}
	type angle struct {
		A float32 `repl:"angle,bits=8,place"`
	}
	type both struct {
		N int32 `repl:"linear,hold"`
	}
	type skipped struct {
		N int32
		M int32 `repl:"-,cut"`
	}
	type twice struct {
		N int32 `repl:"cut,cut"`
	}
	type place2 struct {
		X float32 `repl:"place"`
	}
	type speed3 struct{ X, Y, Z float32 }
	type entity struct {
		E ecs.Entity `repl:"hold"`
	}
	with := func(tag string) replication.ComponentOption { return replication.Field("X", tag) }
	for i, c := range []struct {
		want string
		call func(s *replication.Schema)
	}{
		{"both.N: hold and linear exclude each other", func(s *replication.Schema) { replication.Register[both](s) }},
		{"skipped.M: - goes without hold, cut and place", func(s *replication.Schema) { replication.Register[skipped](s) }},
		{"twice.N: cut is given twice", func(s *replication.Schema) { replication.Register[twice](s) }},
		{"hold takes no value", func(s *replication.Schema) { replication.Register[shownPlace](s, with("hold=1")) }},
		{"angle.A: place is for coordinates: floats", func(s *replication.Schema) { replication.Register[angle](s) }},
		{"plain.N: place is for coordinates: floats", func(s *replication.Schema) {
			replication.Register[plain](s, replication.Field("N", "place"))
		}},
		{"wide.At[3]: place is given to 4 fields of wide", func(s *replication.Schema) { replication.Register[wide](s) }},
		{"place2.X: place is given to shownWheel.At[0] already: one component has", func(s *replication.Schema) {
			replication.Register[shownWheel](s)
			replication.Register[place2](s)
		}},
		{"entity.E: an entity takes no tag but cut and -", func(s *replication.Schema) { replication.Register[entity](s) }},
		{"shownPlace.X: cut is for components: nothing is shown between two values of a message", func(s *replication.Schema) {
			replication.RegisterMessage[shownPlace](s, replication.Field("X", "cut"))
		}},
		{"shownPlace.X: hold is for components: nothing is shown between two values of an input", func(s *replication.Schema) {
			replication.RegisterInput[shownPlace](s, replication.Field("X", "hold"))
		}},
		{"shownPlace.X: place is for components: nothing is shown between two values of a resource", func(s *replication.Schema) {
			replication.RegisterResource[shownPlace](s, with("place"))
		}},
		{"shownPlace: the options Newest, Snap and Hermite are for components", func(s *replication.Schema) {
			replication.RegisterResource[shownPlace](s, replication.Newest())
		}},
		{"shownPlace: the option Newest goes without Snap and Hermite", func(s *replication.Schema) {
			replication.Register[shownPlace](s, replication.Newest(), replication.Snap(1))
		}},
		{"plain: the option Snap measures how far fields move linearly, and none does", func(s *replication.Schema) {
			replication.Register[plain](s, replication.Snap(1))
		}},
		{"Snap(NaN): use the distance above 0", func(*replication.Schema) { replication.Snap(math.NaN()) }},
		{"Snap(0): use the distance above 0", func(*replication.Schema) { replication.Snap(0) }},
		{"Hermite(0): use the way", func(*replication.Schema) { replication.Hermite[shownSpeed](0) }},
		{"Hermite(+Inf): use the way", func(*replication.Schema) { replication.Hermite[shownSpeed](math.Inf(1)) }},
		{"shownPlace: the option Hermite needs the component replication_test.shownSpeed: register it before shownPlace", func(s *replication.Schema) {
			replication.Register[shownPlace](s, replication.Hermite[shownSpeed](1))
		}},
		{"shownPlace: the option Hermite: shownPlace and shownSpeed have other conditions", func(s *replication.Schema) {
			replication.Register[shownSpeed](s, replication.OwnerOnly())
			replication.Register[shownPlace](s, replication.Hermite[shownSpeed](1))
		}},
		{"shownPlace: the option Hermite: shownPlace has 2 floats that move linearly, and speed3 has 3", func(s *replication.Schema) {
			replication.Register[speed3](s)
			replication.Register[shownPlace](s, replication.Hermite[speed3](1))
		}},
	} {
		func() {
			defer func() { require.Contains(t, fmt.Sprint(recover()), c.want, "case %d", i) }()
			c.call(replication.NewSchema())
		}()
	}
}
