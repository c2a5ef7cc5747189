package main

import (
	"reflect"

	"github.com/arche-replicate/arche-replicate/replication"
)

// This file has types that a recording's schema needs and that reflect can't make at run time: a component that is a
// number, a text or an array of them needs a type that no other component has, and so does one that the game converts
// by a codec.

// Scalars that differ from slot to slot.
type (
	ownBool[Slot any]    bool
	ownInt8[Slot any]    int8
	ownInt16[Slot any]   int16
	ownInt32[Slot any]   int32
	ownInt64[Slot any]   int64
	ownUint8[Slot any]   uint8
	ownUint16[Slot any]  uint16
	ownUint32[Slot any]  uint32
	ownUint64[Slot any]  uint64
	ownFloat32[Slot any] float32
	ownFloat64[Slot any] float64
	ownString[Slot any]  string
)

// coded has the codes of a value that the game converts by a codec, which is not known: they stand for the value.
type coded[Slot any, Codes codeArray] struct{ Codes Codes }

type codeArray interface {
	[4]uint64 | [32]uint64 | [256]uint64
}

// codec keeps codes as they are.
type codec[Slot any, Codes codeArray] []replication.CodecField

func (c codec[Slot, Codes]) Fields() []replication.CodecField { return c }

func (c codec[Slot, Codes]) Encode(v *coded[Slot, Codes], codes []uint64) {
	for i := range codes {
		codes[i] = v.Codes[i]
	}
}

func (c codec[Slot, Codes]) Decode(codes []uint64, v *coded[Slot, Codes]) {
	for i, code := range codes {
		v.Codes[i] = code
	}
}

// slot makes the types of one of the components of a schema.
type slot struct {
	scalar func(like reflect.Type) reflect.Type
	codec  func(fields []replication.CodecField) (typ reflect.Type, with func(paths ...string) replication.TypeOption)
}

func slotOf[Slot any]() slot { return slot{ownScalar[Slot], ownCodec[Slot]} }

func ownScalar[Slot any](like reflect.Type) reflect.Type {
	switch like.Kind() {
	case reflect.Bool:
		return reflect.TypeFor[ownBool[Slot]]()
	case reflect.Int8:
		return reflect.TypeFor[ownInt8[Slot]]()
	case reflect.Int16:
		return reflect.TypeFor[ownInt16[Slot]]()
	case reflect.Int32:
		return reflect.TypeFor[ownInt32[Slot]]()
	case reflect.Int64:
		return reflect.TypeFor[ownInt64[Slot]]()
	case reflect.Uint8:
		return reflect.TypeFor[ownUint8[Slot]]()
	case reflect.Uint16:
		return reflect.TypeFor[ownUint16[Slot]]()
	case reflect.Uint32:
		return reflect.TypeFor[ownUint32[Slot]]()
	case reflect.Uint64:
		return reflect.TypeFor[ownUint64[Slot]]()
	case reflect.Float32:
		return reflect.TypeFor[ownFloat32[Slot]]()
	case reflect.Float64:
		return reflect.TypeFor[ownFloat64[Slot]]()
	case reflect.String:
		return reflect.TypeFor[ownString[Slot]]()
	case reflect.Array: // of bytes, as one value
		return reflect.ArrayOf(like.Len(), ownScalar[Slot](like.Elem()))
	}
	return like
}

func ownCodec[Slot any](fields []replication.CodecField) (reflect.Type, func(...string) replication.TypeOption) {
	switch n := len(fields); {
	case n <= 4:
		return codecOf[Slot, [4]uint64](fields)
	case n <= 32:
		return codecOf[Slot, [32]uint64](fields)
	}
	return codecOf[Slot, [256]uint64](fields)
}

func codecOf[Slot any, Codes codeArray](
	fields []replication.CodecField,
) (reflect.Type, func(...string) replication.TypeOption) {
	return reflect.TypeFor[coded[Slot, Codes]](), func(paths ...string) replication.TypeOption {
		return replication.With(codec[Slot, Codes](fields), paths...)
	}
}

// slots are as many as a schema may have of such components.
var slots = []slot{
	slotOf[[0]int](), slotOf[[1]int](), slotOf[[2]int](), slotOf[[3]int](),
	slotOf[[4]int](), slotOf[[5]int](), slotOf[[6]int](), slotOf[[7]int](),
	slotOf[[8]int](), slotOf[[9]int](), slotOf[[10]int](), slotOf[[11]int](),
	slotOf[[12]int](), slotOf[[13]int](), slotOf[[14]int](), slotOf[[15]int](),
	slotOf[[16]int](), slotOf[[17]int](), slotOf[[18]int](), slotOf[[19]int](),
	slotOf[[20]int](), slotOf[[21]int](), slotOf[[22]int](), slotOf[[23]int](),
	slotOf[[24]int](), slotOf[[25]int](), slotOf[[26]int](), slotOf[[27]int](),
	slotOf[[28]int](), slotOf[[29]int](), slotOf[[30]int](), slotOf[[31]int](),
}
