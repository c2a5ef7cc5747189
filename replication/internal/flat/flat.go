// Package flat makes words of values of any type, to compare them.
package flat

import (
	"fmt"
	"math"
	"reflect"
	"slices"
)

// A Flattener makes words of values, also of unexported fields and of what pointers point to. If Target is the index of
// a word, it finds out where that comes from.
type Flattener struct {
	Words  []uint64
	Start  int // of the present component
	Target int
	Path   string
	Kind   reflect.Kind              // of the value whose word it is
	Opaque func(t reflect.Type) bool // what pointers are not followed to
	within []uintptr                 // pointers that are being followed
}

const mostFollowed = 1 << 16 // words of a component, behind which no pointer is followed

// Add appends the words of a value.
func (f *Flattener) Add(v reflect.Value) {
	from, word := len(f.Words), uint64(0)
	f.Words = append(f.Words, 0)
	switch v.Kind() {
	case reflect.Bool:
		if v.Bool() {
			word = 1
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		word = uint64(v.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		word = v.Uint()
	case reflect.Float32, reflect.Float64:
		word = math.Float64bits(v.Float())
	case reflect.Complex64, reflect.Complex128:
		word = math.Float64bits(real(v.Complex()))
		f.Words = append(f.Words, math.Float64bits(imag(v.Complex())))
	case reflect.Struct:
		for i := range v.NumField() {
			part := len(f.Words)
			if f.Add(v.Field(i)); f.Hits(part) {
				f.Path = "." + v.Type().Field(i).Name + f.Path
			}
		}
	case reflect.Array, reflect.Slice, reflect.String:
		word = uint64(v.Len())
		for i := range v.Len() {
			part := len(f.Words)
			if f.Add(v.Index(i)); f.Hits(part) {
				f.Path = fmt.Sprintf("[%d]", i) + f.Path
			}
		}
	case reflect.Map:
		word = uint64(v.Len())
		f.addEntries(v)
	case reflect.Interface:
		if !v.IsNil() {
			word = 1
			f.Add(v.Elem())
		}
	case reflect.Pointer:
		if v.IsNil() {
			break
		}
		word = 1
		most := len(f.Words)-f.Start >= mostFollowed
		if !most && !slices.Contains(f.within, v.Pointer()) && !f.Opaque(v.Type().Elem()) {
			f.within = append(f.within, v.Pointer())
			f.Add(v.Elem())
			f.within = f.within[:len(f.within)-1]
		}
	}
	f.Words[from] = word
	if f.Target == from {
		f.Kind = v.Kind()
	}
}

// addEntries adds the entries of a map in an order of their own.
func (f *Flattener) addEntries(v reflect.Value) {
	var entries [][]uint64
	for it := v.MapRange(); it.Next(); {
		e := Flattener{Target: -1, Opaque: f.Opaque, within: f.within}
		e.Add(it.Key())
		e.Add(it.Value())
		entries = append(entries, e.Words)
	}
	slices.SortFunc(entries, slices.Compare[[]uint64])
	f.Words = append(f.Words, slices.Concat(entries...)...)
}

// Hits reports whether what was added since from has the target.
func (f *Flattener) Hits(from int) bool { return f.Target >= from && f.Target < len(f.Words) }

// Show returns the value of a word.
func Show(kind reflect.Kind, word uint64) string {
	switch kind {
	case reflect.Bool:
		return fmt.Sprint(word != 0)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return fmt.Sprint(int64(word))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return fmt.Sprint(word)
	case reflect.Float32:
		return fmt.Sprint(float32(math.Float64frombits(word)))
	case reflect.Float64:
		return fmt.Sprint(math.Float64frombits(word))
	case reflect.Array, reflect.Slice, reflect.Map, reflect.String:
		return fmt.Sprintf("%d elements", word)
	}
	return ""
}
