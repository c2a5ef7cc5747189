package field

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseFieldTag(t *testing.T) {
	number := func(v float64) optionalNumber { return optionalNumber{value: v, given: true} }
	for text, want := range map[string]Tag{
		"":                              {},
		"-":                             {Mode: ModeSkip},
		"half":                          {Mode: modeHalf},
		"raw":                           {Mode: modeRaw},
		"range=0:100":                   {low: "0", high: "100", ranged: true},
		"range=-32:32,step=0.001953125": {low: "-32", high: "32", ranged: true, step: number(0.001953125)},
		"precision=1e-3,range=0:1":      {low: "0", high: "1", ranged: true, precision: number(0.001)},
		"quat,bits=9":                   {Mode: ModeQuat, bits: 9, hasBits: true},
		"angle,bits=9,period=360":       {Mode: modeAngle, bits: 9, hasBits: true, period: number(360)},
		"bits=0,unit":                   {Mode: ModeUnit, hasBits: true},
		"enum=5":                        {Mode: modeEnum, count: 5},
		"flags=05":                      {Mode: modeFlags, count: 5},
		"max=32":                        {Mode: ModeMax, count: 32},
		"counter":                       {hint: hintCounter},
		"wrap,range=0:359":              {low: "0", high: "359", ranged: true, hint: hintWrap},
		"range=0s:1h,step=1ms":          {low: "0s", high: "1h", ranged: true, step: optionalNumber{value: 1e6, given: true, duration: true}},
		" range = 0 : 100 ,\tstep= 2s ": {low: "0", high: "100", ranged: true, step: optionalNumber{value: 2e9, given: true, duration: true}},
		"angle, bits=9, period = 360":   {Mode: modeAngle, bits: 9, hasBits: true, period: number(360)},
	} {
		got, err := ParseTag(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for text, want := range map[string]string{
		"nonsense":                `unknown key "nonsense" in the tag: known are range, step, precision, enum, flags, max, angle, period, unit, quat, bits, half, raw, margin, jump, linear, wrap, counter, hold, cut, place and -`,
		"half,":                   `unknown key "" in the tag: known are range, step, precision, enum, flags, max, angle, period, unit, quat, bits, half, raw, margin, jump, linear, wrap, counter, hold, cut, place and -`,
		"half, rav":               `unknown key "rav" in the tag: known are range, step, precision, enum, flags, max, angle, period, unit, quat, bits, half, raw, margin, jump, linear, wrap, counter, hold, cut, place and -`,
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
		strings.Repeat("z", 5000): `unknown key "` + strings.Repeat("z", 40) + `" in the tag: known are range, step, precision, enum, flags, max, angle, period, unit, quat, bits, half, raw, margin, jump, linear, wrap, counter, hold, cut, place and -`,
	} {
		_, err := ParseTag(text)
		require.EqualError(t, err, want, text)
	}
}

// TestTagsUnderAWrongKeyAreRefused: reflect ignores them without a word, so the field would be replicated in full.
func TestTagsUnderAWrongKeyAreRefused(t *testing.T) {
	const malformed = `can't be read: write repl:"KEYS", without a blank before the quotes and with nothing but a blank between two tags`
	for tags, want := range map[string]string{
		`replicate:"range=0:1,step=1"`:         `the tag key "replicate" is not known: write repl:"range=0:1,step=1"; if the key belongs to something else, add repl:""`,
		`Repl:"half"`:                          `the tag key "Repl" is not known: write repl:"half"; if the key belongs to something else, add repl:""`,
		`json:"x,omitempty" replication:"raw"`: `the tag key "replication" is not known: write repl:"raw"; if the key belongs to something else, add repl:""`,
		`rpl:"-"`:                              `the tag key "rpl" is not known: write repl:"-"; if the key belongs to something else, add repl:""`,
		`rep:"-"`:                              `the tag key "rep" is not known: write repl:"-"; if the key belongs to something else, add repl:""`,
		`relp:"-"`:                             `the tag key "relp" is not known: write repl:"-"; if the key belongs to something else, add repl:""`,
		`reppl:"-"`:                            `the tag key "reppl" is not known: write repl:"-"; if the key belongs to something else, add repl:""`,
		`repl: "range=0:1"`:                    `the tag "repl: \"range=0:1\"" ` + malformed,
		`repl:range=0:1`:                       `the tag "repl:range=0:1" ` + malformed,
		`repl="half"`:                          `the tag "repl=\"half\"" ` + malformed,
		`repl:'half'`:                          `the tag "repl:'half'" ` + malformed,
		`repl:"half`:                           `the tag "repl:\"half" ` + malformed,
		`repl`:                                 `the tag "repl" ` + malformed,
		`json:"x",repl:"half"`:                 `the tag ",repl:\"half\"" ` + malformed,
		`range=-1:1,step=0.01`:                 `the tag has no key: write repl:"range=-1:1,step=0.01"`,
	} {
		text, err := TagText(reflect.StructTag(tags))
		require.EqualError(t, err, want, tags)
		require.Empty(t, text)
	}
	for tags, want := range map[string]string{
		"":                                       "",
		`repl:"half"`:                            "half",
		`json:"x" repl:"half"`:                   "half",
		`json:"x"repl:"half"`:                    "half",
		`replicate:"x" repl:""`:                  "",
		`json:"pos" yaml:"pos" validate:"max=5"`: "",
		`db:"p" real:"x" r:"1" re:"1" pl:"1" rule:"x"`: "",
		`prose that nobody reads`:                      "",
		`: : "`:                                        "",
		`"`:                                            "",
	} {
		text, err := TagText(reflect.StructTag(tags))
		require.NoError(t, err, tags)
		require.Equal(t, want, text, tags)
	}
}
