package schema

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

type tunedBody struct {
	X, Y   float32    `repl:"range=-10:10,step=0.01"`
	Q      [4]float32 `repl:"quat,bits=9"`
	Wheels [2]float32 `repl:"angle,bits=8"`
	Score  uint32     `repl:"linear"`
	HP     uint8
	Men    [2]tunedMan
}

type tunedMan struct {
	X uint8 `repl:"linear"`
}

type tunedHeat float32

func tunedSchema(t *testing.T) *Schema {
	s := new(Schema)
	require.NoError(t, s.Register(reflect.TypeFor[tunedHeat](), &Options{}))
	require.NoError(t, s.Register(reflect.TypeFor[tunedBody](), &Options{}))
	return s
}

// TestTune: tables are in the text and in the layout, those of an array in all of its elements.
func TestTune(t *testing.T) {
	s := tunedSchema(t)
	before := s.FullText()
	require.NoError(t, Tune(s, ""))
	require.Equal(t, before, s.FullText())
	require.NoError(t, Tune(s, " tunedBody.Y=0a1  tunedBody.Wheels=3\n"))
	require.NoError(t, Tune(s, "tunedBody.Score=0123456789abcdef tunedBody.Q=2 tunedBody.Men[1].X=5"))
	want := strings.Replace(before, "Body.Y float32 range=-10:10,step=0.01", "Body.Y float32 range=-10:10,step=0.01,orders=0a1", 1)
	want = strings.Replace(want, "quat,bits=9", "quat,bits=9,orders=2", 1)
	want = strings.Replace(want, "[2]float32 angle,bits=8,period=6.283185307179586", "[2]float32 angle,bits=8,period=6.283185307179586,orders=3", 1)
	want = strings.Replace(want, "uint32 linear", "uint32 linear,orders=0123456789abcdef", 1)
	want = strings.Replace(want, "Men[1].X uint8 linear", "Men[1].X uint8 linear,orders=5", 1)
	require.Equal(t, want, s.FullText())
	s.Freeze()
	require.Equal(t, want, s.FullText())
	got := map[string][]uint8{}
	for _, c := range s.Layout.Components {
		for _, f := range c.Fields {
			if f.Orders != nil {
				got[f.Name] = f.Orders
			}
		}
	}
	require.Equal(t, map[string][]uint8{
		"Y": {0, 10, 1}, "Q": {2}, "Wheels[0]": {3}, "Wheels[1]": {3}, "Men[1].X": {5},
		"Score": {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
	}, got)
	require.ErrorContains(t, Tune(s, "tunedBody.X=1"), "the schema is in use")
}

func TestTuneRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"tunedBody.X":                      `"tunedBody.X" has no equals sign: write Component.Field=ORDERS`,
		"tunedBody.X=":                     "tunedBody.X=: there are 0 orders: use 1 to 16 digits",
		"tunedBody.X=01234567012345670":    "tunedBody.X=01234567012345670: there are 17 orders: use 1 to 16 digits",
		"tunedBody.X=0G":                   "tunedBody.X=0G: 'G' is no digit from 0 to f",
		"tunedBody.Z=0":                    `the schema has no field "tunedBody.Z"`,
		"tunedBody=0":                      `the schema has no field "tunedBody"`,
		"tunedBody.Wheels[0]=0":            `the schema has no field "tunedBody.Wheels[0]"`,
		"tunedBody.HP=0":                   "tunedBody.HP is not extrapolated, so it takes no orders",
		"tunedHeat=0":                      "tunedHeat is not extrapolated, so it takes no orders",
		"tunedBody.X=0 tunedBody.X=1":      "tunedBody.X is tuned twice",
		"tunedBody.X=0 tunedBody.Y=\x00":   `'\x00' is no digit`,
		strings.Repeat("x", 10_000) + "=1": `the schema has no field "xxx`,
	} {
		err := Tune(tunedSchema(t), text)
		require.ErrorContains(t, err, want, "%.40q", text)
		require.Less(t, len(err.Error()), 400)
	}
}
