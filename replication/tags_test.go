package replication

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

func TestParseFieldTag(t *testing.T) {
	number := func(v float64) optionalNumber { return optionalNumber{value: v, given: true} }
	for text, want := range map[string]fieldTag{
		"":                              {},
		"-":                             {mode: modeSkip},
		"half":                          {mode: modeHalf},
		"raw":                           {mode: modeRaw},
		"range=0:100":                   {low: "0", high: "100", ranged: true},
		"range=-32:32,step=0.001953125": {low: "-32", high: "32", ranged: true, step: number(0.001953125)},
		"precision=1e-3,range=0:1":      {low: "0", high: "1", ranged: true, precision: number(0.001)},
		"quat,bits=9":                   {mode: modeQuat, bits: 9, hasBits: true},
		"angle,bits=9,period=360":       {mode: modeAngle, bits: 9, hasBits: true, period: number(360)},
		"bits=0,unit":                   {mode: modeUnit, hasBits: true},
		"enum=5":                        {mode: modeEnum, count: 5},
		"flags=05":                      {mode: modeFlags, count: 5},
		"max=32":                        {mode: modeMax, count: 32},
		"counter":                       {hint: hintCounter},
		"wrap,range=0:359":              {low: "0", high: "359", ranged: true, hint: hintWrap},
		"range=0s:1h,step=1ms":          {low: "0s", high: "1h", ranged: true, step: optionalNumber{value: 1e6, given: true, duration: true}},
	} {
		got, err := parseFieldTag(text)
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
		_, err := parseFieldTag(text)
		require.EqualError(t, err, want, text)
	}
}

// FuzzTag registers a field of every kind with the tag: it must be refused with an error or give a codec that survives a
// round trip and writes the same text when parsed again.
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
		tag, err := parseFieldTag(text)
		if err != nil {
			require.Equal(t, fieldTag{}, tag)
			return
		}
		if tag.mode == modeSkip {
			return
		}
		for _, typ := range types {
			c := component{name: "P", typ: typ, size: typ.Size()}
			fl := flattener{component: &c}
			if err := fl.value(typ, fieldPlace{}, tag); err != nil {
				require.NotEmpty(t, err.Error())
				continue
			}
			require.Len(t, c.lines, 1)

			_, written, _ := strings.Cut(c.columns[0].codec.text, " ")
			again, err := parseFieldTag(written)
			require.NoError(t, err, "canonical text %q", written)
			c2 := component{name: "P", typ: typ, size: typ.Size()}
			fl = flattener{component: &c2}
			require.NoError(t, fl.value(typ, fieldPlace{}, again))
			require.Equal(t, c.lines, c2.lines)
			require.Equal(t, c.columns, c2.columns)

			v := reflect.New(typ)
			row, row2 := make([]uint32, c.words), make([]uint32, c.words)
			c.readColumn(row, v.UnsafePointer(), 1)
			require.True(t, c.validRow(row))
			c.write(v.UnsafePointer(), row)
			require.Zero(t, c.readColumn(row2, v.UnsafePointer(), 1))
			require.Equal(t, row, row2)
		}
	})
}
