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

func TestParseFieldTag(t *testing.T) {
	number := func(v float64) field.OptionalNumber { return field.OptionalNumber{Value: v, Given: true} }
	for text, want := range map[string]field.Tag{
		"":                              {},
		"-":                             {Mode: field.ModeSkip},
		"half":                          {Mode: field.ModeHalf},
		"raw":                           {Mode: field.ModeRaw},
		"range=0:100":                   {Low: "0", High: "100", Ranged: true},
		"range=-32:32,step=0.001953125": {Low: "-32", High: "32", Ranged: true, Step: number(0.001953125)},
		"precision=1e-3,range=0:1":      {Low: "0", High: "1", Ranged: true, Precision: number(0.001)},
		"quat,bits=9":                   {Mode: field.ModeQuat, Bits: 9, HasBits: true},
		"angle,bits=9,period=360":       {Mode: field.ModeAngle, Bits: 9, HasBits: true, Period: number(360)},
		"bits=0,unit":                   {Mode: field.ModeUnit, HasBits: true},
		"enum=5":                        {Mode: field.ModeEnum, Count: 5},
		"flags=05":                      {Mode: field.ModeFlags, Count: 5},
		"max=32":                        {Mode: field.ModeMax, Count: 32},
		"counter":                       {Hint: field.HintCounter},
		"wrap,range=0:359":              {Low: "0", High: "359", Ranged: true, Hint: field.HintWrap},
		"range=0s:1h,step=1ms":          {Low: "0s", High: "1h", Ranged: true, Step: field.OptionalNumber{Value: 1e6, Given: true, Duration: true}},
	} {
		got, err := field.ParseTag(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for text, want := range map[string]string{
		"nonsense":                `unknown key "nonsense" in the tag: known are range, step, precision, enum, flags, max, angle, period, unit, quat, bits, half, raw, jump, linear, wrap, counter and -`,
		"half,":                   `unknown key "" in the tag: known are range, step, precision, enum, flags, max, angle, period, unit, quat, bits, half, raw, jump, linear, wrap, counter and -`,
		"half, raw":               `unknown key " raw" in the tag: known are range, step, precision, enum, flags, max, angle, period, unit, quat, bits, half, raw, jump, linear, wrap, counter and -`,
		"range":                   "range needs a value: range=MIN:MAX",
		"bits":                    "bits needs a value: bits=N",
		"step":                    "step needs a value: step=S",
		"precision":               "precision needs a value: precision=P",
		"period":                  "period needs a value: period=P",
		"enum":                    "enum needs a value: enum=N",
		"flags":                   "flags needs a value: flags=N",
		"max":                     "max needs a value: max=N",
		"enum=-1":                 "enum=-1 is not a small whole number",
		"max=3000000000":          "max=3000000000 is not a small whole number",
		"enum=2,flags=2":          "enum and flags exclude each other: choose one",
		"max=2,max=2":             "max and max exclude each other: choose one",
		"counter=1":               `counter takes no value, but there is "counter=1"`,
		"jump,wrap":               "jump and wrap exclude each other: choose one",
		"half=1":                  `half takes no value, but there is "half=1"`,
		"-=":                      `- takes no value, but there is "-="`,
		"range=5":                 "range=5 has no colon: write range=MIN:MAX",
		"range=0:1,range=0:1":     "range is given twice",
		"bits=1,bits=1":           "bits is given twice",
		"step=1,step=1":           "step is given twice",
		"quat,angle":              "quat and angle exclude each other: choose one",
		"half,half":               "half and half exclude each other: choose one",
		"bits=-1":                 "bits=-1 is not a small whole number",
		"bits=256":                "bits=256 is not a small whole number",
		"step=x":                  "step=x is not a number",
		"step=1e999":              "step=1e999 is not a number",
		strings.Repeat("z", 5000): `unknown key "` + strings.Repeat("z", 40) + `" in the tag: known are range, step, precision, enum, flags, max, angle, period, unit, quat, bits, half, raw, jump, linear, wrap, counter and -`,
	} {
		_, err := field.ParseTag(text)
		require.EqualError(t, err, want, text)
	}
}

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
			require.Equal(t, c.Columns, c2.Columns)

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
