//go:build !js && !wasip1

// Not built where there are no files.

package replication_test

import (
	"reflect"
	"time"

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/replication"
)

// The components of the golden packets use most kinds of fields.

type (
	goldenTransform struct {
		X, Y    float32 `repl:"range=-1000:1000,step=0.01"`
		Heading float32 `repl:"angle,bits=10"`
	}
	goldenSpin struct {
		Q [4]float32 `repl:"quat,bits=9"`
	}
	goldenHealth struct {
		HP    uint8 `repl:"range=0:100"`
		Alive bool
	}
	goldenScore struct {
		Kills uint32 `repl:"counter"`
		Keys  uint8  `repl:"flags=5"`
		Hour  uint8  `repl:"range=0:23,wrap"`
		Team  uint8  `repl:"enum=3"`
	}
	goldenName struct {
		Text string `repl:"max=12"`
	}
	goldenTarget struct {
		Of   ecs.Entity
		Seen [2]ecs.Entity
	}
	goldenFrozen struct{}
	goldenRider  struct {
		ecs.Relation
		Seat uint8 `repl:"range=0:3"`
	}
	goldenOdd struct {
		Look  [3]float32    `repl:"unit,bits=10"`
		Far   float32       `repl:"range=-500:1000000,precision=1"`
		Half  float32       `repl:"half"`
		Exact float64       // raw bits
		Wide  uint64        `repl:"linear"`
		Turn  int16         `repl:"range=-180:179,wrap"`
		Steps int32         `repl:"range=-10:1005,step=10"`
		Bag   [2][2]uint8   `repl:"range=0:9"`
		Legs  [2][4]float64 `repl:"quat,bits=15"`
		Blob  [8]byte       `repl:"max=8"`
	}
	goldenStory struct {
		Text string `repl:"max=400"`
	}
	goldenRing struct {
		At     uint64     `repl:"wrap"`
		Turns  uint16     `repl:"linear"`
		Wheels [3]float32 `repl:"angle,bits=8"`
		Dials  [2]uint8   `repl:"range=0:99,wrap"`
	}
	goldenMeasures struct {
		Third  float32       `repl:"range=0:1,step=0.3"`
		Grid   float64       `repl:"range=0:9,step=0.3333333333333333"`
		Offset float64       `repl:"range=0.1:9,step=0.3333333333333333"`
		Near   float32       `repl:"range=2:1000,precision=0.5"`
		Cold   float64       `repl:"range=-300:-2,precision=0.001"`
		Power  float32       `repl:"range=-1:64,precision=0.25"`
		Aim    float32       `repl:"angle,bits=8,period=360,jump"`
		Age    time.Duration `repl:"range=0s:1h,step=7ms"`
		Money  int64         `repl:"linear"`
		Level  int16         `repl:"counter"`
		Doors  uint8         `repl:"flags=1"`
		Serial uint8         `repl:"wrap"`
		Pair   [2]struct{ A bool }
	}
	goldenMatch struct {
		Round uint8
		Clock float64 `repl:"range=0:3600,step=0.1"`
	}
	goldenWeather struct {
		Rain uint8 `repl:"range=0:9"`
	}
)

// A goldenType is a component or resource of the schema: its name, and its codes in the order of
// Schema.Codes: n a number, q a rotation, r a reference, a number the longest length of a text.
type goldenType struct {
	name  string
	codes []any
}

var goldenTypes = map[reflect.Type]goldenType{
	reflect.TypeFor[goldenTransform](): {"Transform", []any{'n', 'n', 'n'}},
	reflect.TypeFor[goldenSpin]():      {"Spin", []any{'q'}},
	reflect.TypeFor[goldenHealth]():    {"Health", []any{'n', 'n'}},
	reflect.TypeFor[goldenScore]():     {"Score", []any{'n', 'n', 'n', 'n'}},
	reflect.TypeFor[goldenName]():      {"Name", []any{12}},
	reflect.TypeFor[goldenTarget]():    {"Target", []any{'r', 'r', 'r'}},
	reflect.TypeFor[goldenFrozen]():    {"Frozen", nil},
	reflect.TypeFor[goldenRider]():     {"Rider", []any{'r', 'n'}},
	reflect.TypeFor[goldenOdd]():       {"Odd", []any{'n', 'n', 'n', 'n', 'n', 'n', 'n', 'n', 'n', 'n', 'n', 'n', 'q', 'q', 8}},
	reflect.TypeFor[goldenRing]():      {"Ring", []any{'n', 'n', 'n', 'n', 'n', 'n', 'n'}},
	reflect.TypeFor[goldenMeasures]():  {"Measures", []any{'n', 'n', 'n', 'n', 'n', 'n', 'n', 'n', 'n', 'n', 'n', 'n', 'n', 'n'}},
	reflect.TypeFor[goldenStory]():     {"Story", []any{400}},
	reflect.TypeFor[goldenMatch]():     {"Match", []any{'n', 'n'}},
	reflect.TypeFor[goldenWeather]():   {"Weather", []any{'n'}},
}

func goldenSchema() *replication.Schema {
	s := replication.NewSchema()
	replication.Register[goldenTransform](s, replication.Name("Transform"))
	replication.Register[goldenSpin](s, replication.Name("Spin"))
	replication.Register[goldenHealth](s, replication.Name("Health"))
	replication.RegisterResource[goldenMatch](s, replication.Name("Match"))
	replication.Register[goldenScore](s, replication.Name("Score"))
	replication.Register[goldenName](s, replication.Name("Name"))
	replication.Register[goldenTarget](s, replication.Name("Target"))
	replication.Register[goldenFrozen](s, replication.Name("Frozen"))
	replication.Register[goldenRider](s, replication.Name("Rider"))
	replication.Register[goldenOdd](s, replication.Name("Odd"))
	replication.Register[goldenRing](s, replication.Name("Ring"))
	replication.Register[goldenMeasures](s, replication.Name("Measures"))
	replication.Register[goldenStory](s, replication.Name("Story"))
	replication.RegisterResource[goldenWeather](s, replication.Name("Weather"))
	s.Tune("Transform.Y=0012344 Spin.Q=101 Odd.Wide=f Odd.Turn=2")
	return s
}
