package main

import (
	"strings"
	"testing"
	"time"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/examples/arena/game"
	"github.com/arche-replicate/arche-replicate/replication"
)

// The types of a game that has every kind of field.
type (
	recVec struct{ X, Y, Z float32 }
	recGun struct {
		Heat  uint8 `repl:"range=0:100,step=5"`
		Ammo  int16
		Since time.Duration `repl:"range=0s:1h,step=1ms,counter"`
	}
	recTank struct {
		Where   recVec
		Heading float32 `repl:"angle,bits=10,cut"`
		Guns    [2]recGun
		Main    recGun
		Turret  struct{ Aim [3]float32 } `repl:""`
		Look    recLook                  `repl:"unit,bits=8"`
		Turn    [4]float64               `repl:"quat,bits=9"`
		Cells   [2][3]uint8              `repl:"range=0:7"`
		Mode    int8                     `repl:"enum=5"`
		Lamps   uint16                   `repl:"flags=9"`
		Name    string                   `repl:"max=12"`
		Tag     [9]byte                  `repl:"max=6"`
		Texts   [2]string                `repl:"max=3"`
		Fuel    float64                  `repl:"range=-10:10,precision=0.01"`
		Half    float32                  `repl:"half,hold"`
		Phase   uint16                   `repl:"range=0:99,wrap"`
		Lap     int32                    `repl:"linear"`
		Target  ecs.Entity
		Crew    [2]ecs.Entity
		Mass    recMass
		Hidden  int `repl:"-"`
		On      bool
		Big     uint64
	}
	recLook   struct{ X, Y, Z float32 }
	recMass   struct{ Kilos, Grams int }
	recSpeed  struct{ V recVec }
	recPlace  struct{ At recVec }
	recFrozen struct{}
	recLevel  uint8
	recTeam   uint8
	recGrid   [3]int16
	recSquad  [2]struct{ HP uint8 }
	recTurn   [4]float32
	recOrders struct {
		ecs.Relation
		Rank uint8
	}
	recBound struct{ ecs.Relation }
	recScore struct{ Blue, Red uint16 }
	recChat  struct {
		Text string `repl:"max=100"`
	}
	recSparks struct{ N uint8 }
	recMove   struct {
		X int8 `repl:"range=-1:1"`
	}
)

// recEmbedding can't be made by package reflect.
type recEmbedding struct{ recMove }

// massCodec replicates masses as two codes.
type massCodec struct{}

func (massCodec) Fields() []replication.CodecField {
	return []replication.CodecField{{Name: "kg", Bits: 12, Max: 999, Kind: delta.Linear}, {Name: "g", Bits: 10}}
}

func (massCodec) Encode(v *recMass, codes []uint64) {
	codes[0], codes[1] = uint64(v.Kilos), uint64(v.Grams)
}

func (massCodec) Decode(codes []uint64, v *recMass) { v.Kilos, v.Grams = int(codes[0]), int(codes[1]) }

// allKinds is a schema with every kind of type, field and option.
func allKinds(conditions bool) *replication.Schema {
	s := replication.NewSchema()
	grid := "range=-100:100,step=0.01"
	replication.Register[recSpeed](s, replication.Field("V.X", grid), replication.Field("V.Y", grid), replication.Field("V.Z", grid))
	replication.Register[recPlace](s, replication.Field("At.X", grid+",place"), replication.Field("At.Y", grid+",place"),
		replication.Field("At.Z", grid+",place"), replication.Snap(5), replication.Hermite[recSpeed](1./60))
	replication.Register[recTank](s, replication.Field("Turret.Aim", "range=-1:1,step=0.001,jump"),
		replication.With[recMass](massCodec{}), replication.Newest(), replication.Priority(2))
	replication.Register[recFrozen](s)
	replication.Register[recLevel](s, replication.Field("", "range=0:50,counter"))
	replication.Register[recTeam](s, replication.Once())
	replication.Register[recGrid](s, replication.Name("game.Grid"))
	replication.Register[recSquad](s)
	replication.Register[recTurn](s, replication.Field("", "quat,bits=8,cut"))
	replication.Register[recMass](s, replication.With[recMass](massCodec{}))
	replication.Register[recOrders](s)
	replication.Register[recBound](s)
	if conditions {
		replication.Register[recLook](s, replication.OwnerOnly())
	}
	replication.RegisterResource[recScore](s)
	replication.RegisterMessage[recChat](s, replication.Immediate())
	replication.RegisterMessage[recSparks](s, replication.Unreliable())
	replication.RegisterInput[recMove](s)
	s.Tune("recSpeed.V.X=0012 recSpeed.V.Y=10 recTank.Turn=021")
	return s
}

// TestASchemaIsMadeFromItsText, whatever is in it.
func TestASchemaIsMadeFromItsText(t *testing.T) {
	arena, _ := game.NewSchema()
	for _, s := range []*replication.Schema{allKinds(false), allKinds(true), arena, replication.NewSchema()} {
		made, err := schemaOf(s.Text())
		require.NoError(t, err)
		require.Equal(t, s.Text(), made.schema.Text())
		require.Equal(t, s.Fingerprint(), made.schema.Fingerprint())
	}
}

// TestHostileSchemaTexts are refused, and nothing panics.
func TestHostileSchemaTexts(t *testing.T) {
	text := allKinds(true).Text()
	for _, s := range []string{
		"", "x", "arche-replicate schema 1\nA.X uint8\n", "arche-replicate schema 1\ncomponent A\nA.X [1000000000]uint8\n",
		"arche-replicate schema 1\ncomponent A\nA.X[4095][4095].Y uint8\n", "arche-replicate schema 1\ncomponent A\nA.X[0 uint8\n",
		"arche-replicate schema 1\ncomponent A\nA.X[-1].Y uint8\n", "arche-replicate schema 1\ncomponent A\nA.x.Y uint8\n",
		"arche-replicate schema 1\ncomponent A\nA.X what\n", "arche-replicate schema 1\ncomponent A hermite=1,B\nA.X float32\n",
		"arche-replicate schema 1\ncomponent A\nA.X uint8\nA.X.Y uint8\n", "arche-replicate schema 1\ncomponent A\nA code bits=3\n",
		"arche-replicate schema 1\ncomponent A\nA.X.Y uint8\nA.X uint8\n", "arche-replicate schema 1\ncomponent A\nA.X[1].Y uint8\nA.X.Y uint8\n",
		"arche-replicate schema 1\ncomponent A\nA.X bytes max=99999999\n", strings.Repeat("\n", maxSchemaText+1),
	} {
		_, err := schemaOf(s)
		require.Error(t, err, s)
	}
	for i := range text {
		for _, c := range []byte("[.0 \nAa") {
			changed := []byte(text)
			changed[i] = c
			if s, err := schemaOf(string(changed)); err == nil {
				require.Equal(t, string(changed), s.schema.Text())
			}
		}
	}
}
