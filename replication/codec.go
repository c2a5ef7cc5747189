package replication

import (
	"fmt"
	"math"
	"math/bits"
	"reflect"
	"sync/atomic"
	"unicode"
	"unsafe" // for the name of the type that Arche hands out; no pointer is computed here

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// A Codec turns values of a type that has no tags, and can't have any, into codes and back. Register components with the option
// [With] to use it; where the values can be had as those of another type with tags, [As] is less work.
//
// Servers and clients on several goroutines may call the methods at the same time. They must not touch the world.
type Codec[T any] interface {
	// Fields returns what codes there are, 1 to 256, always the same. It is called when a component is registered.
	Fields() []CodecField
	// Encode sets the codes of a value, one for each field. They are zero before. A code beyond its field's Max is
	// clamped and counted in [ServerStats]. The codes must follow from the value alone; the zero value has codes as well.
	// Encode must not change the value nor keep the pointer.
	Encode(v *T, codes []uint64)
	// Decode sets a value from codes, each of them within its field's Max: any combination of such must do, as it comes
	// from the wire. The value may be zero or any other before. Encoding it again gives codes that decode to the same.
	Decode(codes []uint64, v *T)
}

// A CodecField is one of the codes of a [Codec].
type CodecField struct {
	// Name is the field's name in the schema's text and in statistics.
	Name string
	// Bits is the width of the code, 1 to 64.
	Bits uint
	// Max is the largest code, 0 for all that Bits allow.
	Max uint64
	// Kind says how the code changes from tick to tick: delta.Plain, Linear, Wrap, Counter or Flags. It changes no value,
	// only what changes cost.
	Kind delta.Kind
}

// maxCodecFields keeps what a codec is asked for small.
const maxCodecFields = 256

// With replicates values of type T by a codec: those in fields with the given paths, or all if there are none, the component
// itself, arrays and nested structs included. Paths are those of [Field].
//
// Panics if the codec is nil.
func With[T any](codec Codec[T], paths ...string) ComponentOption {
	if isNil(codec) {
		panic("replication: With needs a codec that is not nil")
	}
	fields := func() []codecField {
		var fields []codecField
		for _, f := range codec.Fields() {
			fields = append(fields, codecField(f))
		}
		return fields
	}
	return useConversion(&coded[T]{fields: fields, encode: codec.Encode, decode: codec.Decode}, paths)
}

// coded is the conversion of the option With: what a codec of the user does.
type coded[T any] struct {
	fields func() []codecField
	encode func(v *T, codes []uint64)
	decode func(codes []uint64, v *T)
	spare atomic.Pointer[[maxCodecFields]uint64] // so that there is no need to make it every time
}

func (w *coded[T]) option() string { return "With" }

func (w *coded[T]) source() reflect.Type { return reflect.TypeFor[T]() }

func (w *coded[T]) describe(f *flattener, at fieldPlace, tag fieldTag) error {
	if !tag.empty() {
		return f.refuse(at, "a field with a codec takes no tag: remove it")
	}
	fields := w.fields()
	if len(fields) == 0 || len(fields) > maxCodecFields {
		return f.refuse(at, "the codec has %d fields: use 1 to %d", len(fields), maxCodecFields)
	}
	c := f.component
	for i := range fields {
		q, err := fields[i].codec()
		if err != nil {
			return f.refuse(at, "%s", err)
		}
		if f.width += q.width(); f.width > wire.MaxEntityBits {
			return f.refuse(at, "a component takes at most 32 KiB; shorten it, split it or skip the field")
		}
		path := joinPath(at.path, fields[i].Name)
		for j := range c.columns {
			if c.columns[j].path == path {
				return f.refuse(at, "the codec has two fields %q", fields[i].Name)
			}
		}
		c.columns = append(c.columns, column{path: path, word: c.words, codec: q})
		c.words += q.words()
		c.lines = append(c.lines, f.fullPath(path)+" "+q.text)
	}
	return w.try(f, at)
}

// A codecField is one of the codes of a codec of the user.
type codecField struct {
	Name string
	Bits uint
	Max  uint64
	Kind delta.Kind
}

// codec returns the codec of the column.
func (cf *codecField) codec() (*codec, error) {
	for _, r := range cf.Name {
		if r == '.' || r == '[' || unicode.IsSpace(r) || !unicode.IsGraphic(r) || r == unicode.ReplacementChar {
			return nil, fmt.Errorf("the codec's field name %q contains %q: use letters and digits", cf.Name, r)
		}
	}
	q := &codec{op: opCode, bits: cf.Bits, max: cf.Max, moves: cf.Kind}
	if q.max == 0 && cf.Bits <= 64 {
		q.max = math.MaxUint64 >> (64 - cf.Bits)
	}
	switch {
	case cf.Name == "" || len(cf.Name) > 256:
		return nil, fmt.Errorf("the codec's field name %.40q has %d bytes: use 1 to 256", cf.Name, len(cf.Name))
	case cf.Bits < 1 || cf.Bits > 64:
		return nil, fmt.Errorf("the codec's field %s has %d bits: use 1 to 64", cf.Name, cf.Bits)
	case uint(bits.Len64(q.max)) > cf.Bits:
		return nil, fmt.Errorf("the codec's field %s has a largest code of %d, which takes more than its %d bits", cf.Name, q.max, cf.Bits)
	}
	switch cf.Kind {
	case delta.Plain, delta.Linear, delta.Wrap, delta.Counter, delta.Flags:
	default:
		return nil, fmt.Errorf("the codec's field %s is of the kind %v: use Plain, Linear, Wrap, Counter or Flags", cf.Name, cf.Kind)
	}
	q.text = fmt.Sprintf("code bits=%d", cf.Bits)
	if q.max != math.MaxUint64>>(64-cf.Bits) {
		q.text += fmt.Sprintf(",max=%d", q.max)
	}
	if cf.Kind != delta.Plain {
		q.text += "," + cf.Kind.String()
	}
	return q, nil
}

// try looks if the codec does with the zero value, which every component has at first.
func (w *coded[T]) try(f *flattener, at fieldPlace) error {
	var v T
	n := len(f.component.columns)
	first, again := make([]uint64, n), make([]uint64, n)
	w.encode(&v, first)
	w.encode(&v, again)
	for i := range first {
		col := &f.component.columns[i]
		if first[i] != again[i] {
			return f.refuse(at, "the codec has other codes for the same value at every call: the codes of the zero value differ in %q", col.path)
		}
		if first[i] > col.codec.max {
			return f.refuse(at, "the codec has a code for the zero value that is too large: %q has %d, and its largest is %d", col.path, first[i], col.codec.max)
		}
	}
	w.decode(first, &v)
	clear(again)
	w.encode(&v, again)
	for i := range first {
		if first[i] != again[i] {
			return f.refuse(at, "the codec does not give back what it took: the codes of the zero value, decoded and encoded again, differ in %q",
				f.component.columns[i].path)
		}
	}
	return nil
}

func (w *coded[T]) take() *[maxCodecFields]uint64 {
	if s := w.spare.Swap(nil); s != nil {
		return s
	}
	return new([maxCodecFields]uint64)
}

func (w *coded[T]) read(c *component, row []uint32, p unsafe.Pointer) (clamped int) {
	spare := w.take()
	codes := spare[:len(c.columns):len(c.columns)]
	clear(codes)
	w.encode((*T)(p), codes)
	for i, code := range codes {
		col := &c.columns[i]
		if code > col.codec.max {
			code = col.codec.max
			clamped++
		}
		row[col.word] = uint32(code)
		if col.codec.bits > 32 {
			row[col.word+1] = uint32(code >> 32)
		}
	}
	w.spare.Store(spare)
	return clamped
}

func (w *coded[T]) write(c *component, p unsafe.Pointer, row []uint32) {
	spare := w.take()
	codes := spare[:len(c.columns):len(c.columns)]
	for i := range codes {
		col := &c.columns[i]
		codes[i] = min(col.code(row), col.codec.max)
	}
	w.decode(codes, (*T)(p))
	w.spare.Store(spare)
}

func (w *coded[T]) fits(*component, unsafe.Pointer) error { return nil }
