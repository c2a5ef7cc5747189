package replication

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/arche-replicate/arche-replicate/replication/internal/field"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// FuzzTag registers a field of every kind with the tag: it is refused with an error, or gives a
// codec that survives a round trip and writes the same text when parsed again.
func FuzzTag(f *testing.F) {
	for _, sc := range scalarCases() {
		f.Add(sc.tag)
	}
	for _, text := range []string{
		"enum=5", "flags=3", "max=12", "wrap", "counter", "linear", "jump", "range=0:50,step=10,linear", "range=0:99,wrap", "range=0s:1m,step=1ms,counter",
		"angle,bits=8,jump",
	} {
		f.Add(text)
	}
	for _, text := range []string{"quat,bits=9", "unit,bits=10", "-", "half,raw", "range=1:0", "range=:", "range=nan:inf,step=nan", "range=0x1p-3:1_0,step=1"} {
		f.Add(text)
	}
	types := []reflect.Type{
		reflect.TypeFor[bool](), reflect.TypeFor[int8](), reflect.TypeFor[int64](), reflect.TypeFor[uint16](), reflect.TypeFor[uint64](),
		reflect.TypeFor[float32](), reflect.TypeFor[float64](), reflect.TypeFor[[3]float32](), reflect.TypeFor[[4]float64](),
		reflect.TypeFor[ecs.Entity](), reflect.TypeFor[[2]ecs.Entity](),
		reflect.TypeFor[time.Duration](), reflect.TypeFor[string](), reflect.TypeFor[[8]byte](),
	}
	f.Fuzz(func(t *testing.T, text string) {
		tag, err := field.ParseTag(text)
		if err != nil {
			require.Equal(t, field.Tag{}, tag)
			return
		}
		if tag.Mode == field.ModeSkip {
			return
		}
		for _, typ := range types {
			c := schema.Component{Name: "P", Typ: typ, Size: typ.Size()}
			fl := schema.Flattener{Component: &c}
			if err := fl.Value(typ, schema.FieldPlace{}, tag); err != nil {
				require.NotEmpty(t, err.Error())
				continue
			}
			require.Len(t, c.Lines, 1)

			_, written, _ := strings.Cut(c.Columns[0].Codec.Text, " ")
			again, err := field.ParseTag(written)
			require.NoError(t, err, "canonical text %q", written)
			c2 := schema.Component{Name: "P", Typ: typ, Size: typ.Size()}
			fl = schema.Flattener{Component: &c2}
			require.NoError(t, fl.Value(typ, schema.FieldPlace{}, again))
			require.Equal(t, c.Lines, c2.Lines)
			if strings.Contains(text, "jump") == strings.Contains(written, "jump") { // the text lacks it if it costs nothing
				require.Equal(t, c.Columns, c2.Columns)
			}

			v := reflect.New(typ)
			row, row2 := make([]uint32, c.Words), make([]uint32, c.Words)
			c.ReadColumn(row, v.UnsafePointer(), 1)
			require.True(t, c.ValidRow(row))
			c.Write(v.UnsafePointer(), row)
			require.Zero(t, c.ReadColumn(row2, v.UnsafePointer(), 1))
			require.Equal(t, row, row2)
		}
	})
}
