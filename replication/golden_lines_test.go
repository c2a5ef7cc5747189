//go:build !js && !wasip1

// Not built where there are no files.

package replication_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// States as lines of a golden file.

// reference returns the code of an entity in Schema.Codes.
func (s *goldenSession) reference(e ecs.Entity) uint64 {
	return s.schema.Codes(goldenTarget{Of: e}, nil)[0]
}

// A goldenLine has the codes of a component, with a "@" before each reference, and its values.
type goldenLine struct{ codes, values string }

// components returns the components of an entity of either world, in the order of their names.
func (s *goldenSession) components(
	w *ecs.World, e ecs.Entity, codes func(k goldenKey, v any) []uint64,
) []goldenLine {
	var lines []goldenLine
	for _, id := range w.Ids(e) {
		info, _ := ecs.ComponentInfo(w, id)
		if _, ok := goldenTypes[info.Type]; ok {
			v := reflect.NewAt(info.Type, w.Get(e, id)).Elem()
			target := ecs.Entity{}
			if info.IsRelation {
				target = w.Relations().Get(e, id)
			}
			lines = append(lines, s.component(v, target, codes(goldenKey{e, info.Type}, v.Interface())))
		}
	}
	slices.SortFunc(lines, func(a, b goldenLine) int { return strings.Compare(a.codes, b.codes) })
	return lines
}

// resources returns the lines of the resources of a world.
func (s *goldenSession) resources(w *ecs.World) string {
	var text strings.Builder
	for _, id := range []ecs.ResID{ecs.ResourceID[goldenMatch](w), ecs.ResourceID[goldenWeather](w)} {
		if v := reflect.ValueOf(w.Resources().Get(id)); v.IsValid() {
			line := s.component(v.Elem(), ecs.Entity{}, s.schema.Codes(v.Interface(), nil))
			fmt.Fprintf(&text, "    %s = %s\n", line.codes, line.values)
		}
	}
	return text.String()
}

// A goldenKey is a component of an entity.
type goldenKey struct {
	entity ecs.Entity
	typ    reflect.Type
}

// codes returns the codes of a component of the client's world.
func (s *goldenSession) codes(_ goldenKey, v any) []uint64 { return s.schema.Codes(v, nil) }

// component returns the line of a component with the given codes.
func (s *goldenSession) component(v reflect.Value, target ecs.Entity, codes []uint64) goldenLine {
	kind := goldenTypes[v.Type()]
	words := []string{kind.name}
	for i, k := range kind.codes {
		switch k {
		case 'n':
			words = append(words, strconv.FormatUint(codes[0], 10))
			codes = codes[1:]
		case 'q':
			words = append(words, fmt.Sprintf("%d:%d:%d:%d", codes[0], codes[1], codes[2], codes[3]))
			codes = codes[4:]
		case 'r':
			key := codes[0]
			if i == 0 && !target.IsZero() {
				key = s.reference(target)
			}
			word := s.ids[key]
			if word == "" {
				word = "@-"
			}
			words = append(words, word)
			codes = codes[1:]
		default:
			n, most := codes[0], k.(int)
			var text []byte
			for _, c := range codes[1 : 1+(most+3)/4] {
				text = binary.LittleEndian.AppendUint32(text, uint32(c))
			}
			words = append(words, fmt.Sprintf(`"%x"`, text[:n]))
			codes = codes[1+(most+3)/4:]
		}
	}
	require.Empty(s.t, codes, kind.name)
	return goldenLine{strings.Join(words, " "), strings.Join(goldenValues(nil, v), " ")}
}

// goldenValues appends the numbers of a value, texts in hex, and "*" for references.
func goldenValues(words []string, v reflect.Value) []string {
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[ecs.Entity]() || v.Type() == reflect.TypeFor[ecs.Relation]() {
			return append(words, "*")
		}
		for i := range v.NumField() {
			words = goldenValues(words, v.Field(i))
		}
	case reflect.Array:
		if text, ok := v.Interface().([8]byte); ok {
			return append(words, fmt.Sprintf(`"%x"`, bytes.TrimRight(text[:], "\x00")))
		}
		for i := range v.Len() {
			words = goldenValues(words, v.Index(i))
		}
	case reflect.String:
		return append(words, fmt.Sprintf(`"%x"`, v.String()))
	case reflect.Float32, reflect.Float64:
		return append(words, strconv.FormatFloat(v.Float(), 'g', -1, 64))
	case reflect.Int64:
		return append(words, strconv.FormatInt(v.Int(), 10)) // durations in nanoseconds
	default:
		return append(words, fmt.Sprint(v.Interface()))
	}
	return words
}
