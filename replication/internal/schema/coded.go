package schema

// This file has the conversion of the option With.

import (
	"fmt"
	"math"
	"math/bits"
	"reflect"
	"strconv"
	"sync/atomic"
	"unicode"
	"unsafe"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/field"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// maxCodecFields bounds the codes of a codec.
const maxCodecFields = 256

// Coded replicates a T as the codes that the user's codec makes of it.
type Coded[T any] struct {
	Fields func() []CodecField
	Encode func(v *T, codes []uint64)
	Decode func(codes []uint64, v *T)
	spare  atomic.Pointer[[maxCodecFields]uint64] // used again, or nil while somebody uses it
}

func (w *Coded[T]) option() string { return "With" }

func (w *Coded[T]) Source() reflect.Type { return reflect.TypeFor[T]() }

func (w *Coded[T]) describe(f *Flattener, at FieldPlace, tag field.Tag) error {
	if !tag.OnlyCut() {
		return f.refuse(at, "a field with a codec takes no tag but cut and -")
	}
	fields := w.Fields()
	if len(fields) == 0 || len(fields) > maxCodecFields {
		return f.refuse(at, "the codec has %d fields: use 1 to %d", len(fields), maxCodecFields)
	}
	c := f.Component
	for i := range fields {
		q, err := fields[i].codec(&tag)
		if err != nil {
			return f.refuse(at, "%s", err)
		}
		if f.width += q.Width(); f.width > wire.MaxEntityBits {
			return f.refuse(at, tooManyBits)
		}
		path := joinPath(at.path, fields[i].Name)
		for j := range c.Columns {
			if c.Columns[j].Path == path {
				return f.refuse(at, "the codec has two fields %q", fields[i].Name)
			}
		}
		c.Columns = append(c.Columns, Column{Path: path, Word: c.Words, Codec: q})
		c.Words += q.Words()
		c.Lines = append(c.Lines, f.fullPath(path)+" "+q.Text)
	}
	return w.try(f, at)
}

// CodecField is one of the codes of the user's codec.
type CodecField struct {
	Name string
	Bits uint
	Max  uint64
	Kind delta.Kind
}

// codec returns the codec of the column.
func (cf *CodecField) codec(tag *field.Tag) (*field.Codec, error) {
	for _, r := range cf.Name {
		if r == '.' || r == '[' || unicode.IsSpace(r) || !strconv.IsGraphic(r) || r == unicode.ReplacementChar {
			return nil, fmt.Errorf("the codec's field name %q contains %q: use letters and digits", cf.Name, r)
		}
	}
	largest := cf.Max
	if largest == 0 && cf.Bits <= 64 {
		largest = math.MaxUint64 >> (64 - cf.Bits)
	}
	switch {
	case cf.Name == "" || len(cf.Name) > 256:
		return nil, fmt.Errorf("the codec's field name %.40q has %d bytes: use 1 to 256", cf.Name, len(cf.Name))
	case cf.Bits < 1 || cf.Bits > 64:
		return nil, fmt.Errorf("the codec's field %s has %d bits: use 1 to 64", cf.Name, cf.Bits)
	case uint(bits.Len64(largest)) > cf.Bits:
		return nil, fmt.Errorf("the codec's field %s has a largest code of %d, which takes more than its %d bits",
			cf.Name, largest, cf.Bits)
	}
	switch cf.Kind {
	case delta.Plain, delta.Linear, delta.Wrap, delta.Counter, delta.Flags:
	default:
		return nil, fmt.Errorf("the codec's field %s is of the kind %v: use Plain, Linear, Wrap, Counter or Flags",
			cf.Name, cf.Kind)
	}
	text := fmt.Sprintf("code bits=%d", cf.Bits)
	if largest != math.MaxUint64>>(64-cf.Bits) {
		text += fmt.Sprintf(",max=%d", largest)
	}
	if cf.Kind != delta.Plain {
		text += "," + cf.Kind.String()
	}
	return field.NewCode(cf.Bits, largest, cf.Kind, text, tag), nil
}

// try checks that the codec can handle the zero value, with which every component starts.
func (w *Coded[T]) try(f *Flattener, at FieldPlace) error {
	var v T
	n := len(f.Component.Columns)
	first, second := make([]uint64, n), make([]uint64, n)
	w.Encode(&v, first)
	w.Encode(&v, second)
	for i := range first {
		col := &f.Component.Columns[i]
		if first[i] != second[i] {
			return f.refuse(at, "the codec has other codes for the same value at every call: "+
				"the codes of the zero value differ in %q", col.Path)
		}
		if first[i] > col.Codec.Max {
			return f.refuse(at, "the codec has a code for the zero value that is too large: "+
				"%q has %d, and its largest is %d", col.Path, first[i], col.Codec.Max)
		}
	}
	w.Decode(first, &v)
	clear(second)
	w.Encode(&v, second)
	for i := range first {
		if first[i] != second[i] {
			return f.refuse(at, "the codec does not give back what it took: "+
				"the codes of the zero value, decoded and encoded again, differ in %q", f.Component.Columns[i].Path)
		}
	}
	return nil
}

// take returns memory for codes, the spare one if nobody uses it.
func (w *Coded[T]) take() *[maxCodecFields]uint64 {
	if s := w.spare.Swap(nil); s != nil {
		return s
	}
	return new([maxCodecFields]uint64)
}

func (w *Coded[T]) Read(c *Component, row []uint32, p unsafe.Pointer) (clamped int) {
	spare := w.take()
	codes := spare[:len(c.Columns):len(c.Columns)]
	clear(codes)
	w.Encode((*T)(p), codes)
	for i, code := range codes {
		col := &c.Columns[i]
		if code > col.Codec.Max {
			code = col.Codec.Max
			clamped++
		}
		row[col.Word] = uint32(code)
		if col.Codec.Bits > 32 {
			row[col.Word+1] = uint32(code >> 32)
		}
	}
	w.spare.Store(spare)
	return clamped
}

// keeps returns false: what the codes of the user's codec mean is not known.
func (w *Coded[T]) keeps(*Component, []uint32, []uint32, unsafe.Pointer) bool { return false }

func (w *Coded[T]) Write(c *Component, p unsafe.Pointer, row []uint32) {
	spare := w.take()
	codes := spare[:len(c.Columns):len(c.Columns)]
	for i := range codes {
		col := &c.Columns[i]
		codes[i] = min(col.Code(row), col.Codec.Max)
	}
	w.Decode(codes, (*T)(p))
	w.spare.Store(spare)
}

func (w *Coded[T]) Fits(*Component, unsafe.Pointer) error { return nil }
