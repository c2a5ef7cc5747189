package replication

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
)

// A Codec converts values of a type that has no tags, and can't have any, into codes and back. The option [With] uses
// it; if another type with tags can represent the values, [As] is less work.
//
// Its methods may be called from several goroutines at the same time. They must not touch the world.
type Codec[T any] interface {
	// Fields describes the codes: 1 to 256 of them, always the same. It is called when a component is registered.
	Fields() []CodecField
	// Encode sets the codes of a value, one for each field. They are zero before. A code beyond its field's Max is
	// clamped and counted in [ServerStats]. The codes must depend on the value alone; the zero value has codes as well.
	// Encode must not change the value nor keep the pointer.
	Encode(v *T, codes []uint64)
	// Decode sets a value, which may be zero or any other before, from codes within their fields' Max. It must accept
	// any combination, since codes come from the wire. Encoding the result must give codes that decode to the same
	// value.
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
	// Kind is how the code changes from tick to tick: delta.Plain, Linear, Wrap, Counter or Flags. It changes no value,
	// only what changes cost.
	Kind delta.Kind
}

// With replicates values of type T by a codec: those in fields with the given paths (see [Field]), or all if there are
// none, including the component itself, arrays and nested structs.
//
// Panics if the codec is nil.
func With[T any](codec Codec[T], paths ...string) TypeOption {
	if isNil(codec) {
		panic("replication: With needs a codec that is not nil")
	}
	fields := func() (fields []schema.CodecField) {
		for _, f := range codec.Fields() {
			fields = append(fields, schema.CodecField(f))
		}
		return fields
	}
	return useConversion(&schema.Coded[T]{Fields: fields, Encode: codec.Encode, Decode: codec.Decode}, paths)
}

func useConversion(c schema.Conversion, paths []string) TypeOption {
	return typeOption(func(o *schema.Options) {
		use := &schema.ConversionUse{Conversion: c, Paths: paths, Met: make([]bool, max(1, len(paths)))}
		o.Conversions = append(o.Conversions, use)
	})
}

// As replicates values of type T through a twin of type S: the fields of S are sent, by its tags. Use it for components
// that hold more than should be sent, or hold it in another form.
//
// T is the type of the component or of fields in it, as for [With]: those with the given paths, or all if there are
// none. A field's own tag applies to S, if S is not a struct.
//
// to sets a zero S from a T at every capture; it must not change the T, nor keep pointers into it. from sets a T, which
// may be zero or have any value that to and from gave it, when a new state is applied; it leaves fields alone that S
// does not determine. Both must accept zero values, must not touch the world, and must depend on nothing else. They may
// be called from several goroutines at the same time.
//
// S must have no replicated entities or relations: send those in fields of their own. The other end may register S
// itself under the component's name.
//
// Panics if a function is nil.
func As[T, S any](to func(from *T, to *S), from func(from *S, to *T), paths ...string) TypeOption {
	if to == nil {
		panic("replication: As needs two functions: the first one, which makes what is sent, is nil")
	}
	if from == nil {
		panic("replication: As needs two functions: the second one, which takes what was sent, is nil")
	}
	return useConversion(&schema.Twin[T, S]{To: to, From: from}, paths)
}
