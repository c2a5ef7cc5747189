package replication

import (
	"reflect"

	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
)

// A Schema is the ordered list of the types of components, resources, messages and inputs that both ends exchange, and
// how their fields are coded. Server and client must register the same types with the same tags in the same order; the
// handshake compares [Schema.Fingerprint].
//
// Any number of servers and clients can share a schema; the first of them freezes it, and registering panics from then
// on. All other methods may be called from several goroutines at a time.
type Schema struct {
	raw schema.Schema
}

// NewSchema returns a schema without components.
func NewSchema() *Schema { return &Schema{} }

// inside returns what the schema is made of, and panics if it is nil. A zero one is as good as one of NewSchema.
func (s *Schema) inside() *schema.Schema {
	if s == nil {
		panic("replication: there is no schema: make one with NewSchema")
	}
	return &s.raw
}

// refuse panics if there is an error about what is registered.
func refuse(err error) {
	if err != nil {
		panic("replication: " + err.Error())
	}
}

// Register adds the component type T to the schema. The tag of a field selects how it is coded:
//
//	type Position struct {
//		X, Y    float32 `repl:"range=-1000:1000,step=0.01"`
//		Heading float32 `repl:"angle,bits=10"`
//		Cached  []int   `repl:"-"`
//	}
//
// The keys of a tag are separated by commas:
//
//	range=MIN:MAX             an integer of this range, both ends included      quantize.Int
//	range=MIN:MAX,step=S      a float or integer in equal steps of S            quantize.Fixed, Int
//	range=MIN:MAX,precision=P a float off by at most P, finer towards zero      quantize.Float
//	angle,bits=N[,period=P]   a float that wraps after P, by default 2π         quantize.Angle
//	unit,bits=N               a direction: [3]float or a struct of three        quantize.UnitVector
//	quat,bits=N               a rotation: [4]float or a struct of four, x y z w quantize.Quat
//	half                      a float as IEEE 754 binary16                      quantize.Half
//	raw                       a float bit by bit, the same as no tag
//	enum=N                    an integer of 0 to N-1                            quantize.Int
//	flags=N                   the N low bits of an integer, and only these
//	max=N                     a string, or array of bytes as one value, of up to N bytes
//	-                         not replicated: the receiver's value is left alone
//
// One more key describes how a number changes, which affects only what changes cost:
//
//	linear                    an integer that moves steadily: it is extrapolated, as floats in steps always are
//	wrap                      an integer that wraps in its range or type; full turns are dropped
//	counter                   a number that stays the same or grows a little
//	jump                      a float in steps, or an angle, that does not move steadily
//
// Three keys, and the options [Snap], [Hermite] and [Newest], declare how packages interpolation and rewind treat a
// component between two states. Floats, rotations and integers with linear or wrap move; all else changes at the time
// of the next state.
//
//	hold                      a field that would move changes then, too
//	cut                       a change of the field is a discontinuity: nothing of the entity that is under the same
//	                          condition moves between the two states
//	place                     a float that is a coordinate of the entity, for rewind: up to three, in one component
//
// Ranges and steps of an int64, and so of a [time.Duration], may be durations: range=0s:1h,step=1ms.
//
// Without a tag a bool takes one bit, an integer its full width (int and uint: 64 bits) and a float all its bits.
// Nested and embedded structs are coded field by field, fixed arrays element by element, by the array's tag. Unexported
// and blank fields are not replicated. A struct without fields is a tag: its presence is replicated.
//
// A field of type [ecs.Entity] is translated: at the client it refers to the replica of the server's entity, and is
// zero while there is none. So is the target of a relation, a component that embeds [ecs.Relation].
//
// Panics:
//   - if the type has no name, a field of a kind that is not named above, a tag that does not suit its field, or only
//     unexported fields
//   - if the type or its name is registered already
//   - if the schema has 256 components already, or a component more than 4096 fields
//   - if a server or client has been made with the schema
func Register[T any](s *Schema, opts ...ComponentOption) {
	RegisterType(s, reflect.TypeFor[T](), opts...)
}

// RegisterType is [Register] for a type known at run time. Types made by [reflect.StructOf] need the option [Name].
func RegisterType(s *Schema, t reflect.Type, opts ...ComponentOption) {
	var o schema.Options
	applyOptions("Register", opts, func(opt ComponentOption) { opt.applyToComponent(&o) })
	refuse(s.inside().Register(t, &o))
}

// Text returns the schema as text: a line that names the format, then for every component, message and input its name
// and one line for every field, arrays of numbers counting as one. Two schemas have the same text if and only if they
// have the same names and codes.
//
//	arche-replicate schema 1
//	component Position
//	Position.X float32 range=-1000:1000,step=0.01
//	resource Match
//	Match.Round uint8
//
// A last line "facets" stands for all conditions, such as [OwnerOnly], without naming them.
func (s *Schema) Text() string {
	return s.inside().FullText()
}

// Tune replaces the order tables by which the coding Packed writes fields of registered components. It affects no
// value, only what changes cost. text is a list of items, separated by spaces, as examples/trace -tune prints it:
//
//	schema.Tune("Position.X=0012 Position.Y=0012 Rotation.Q=1234")
//
// Each has the name of a field, as in [Schema.Text], and up to 16 digits from 0 to f that replace its orders from 0 on.
// Only fields that are extrapolated have orders: floats in steps, angles, rotations and integers with the key linear or
// wrap. Both ends must be tuned alike: tables are part of the text and the fingerprint.
//
// Panics if an item is malformed, names no registered field, one that is not extrapolated or one that is tuned already,
// or if a server or client has been made with the schema.
func (s *Schema) Tune(text string) {
	refuse(schema.Tune(s.inside(), text))
}

// Fingerprint returns a 64-bit hash (FNV-1a) of [Schema.Text]. It detects mistakes, not forgery.
func (s *Schema) Fingerprint() uint64 {
	return s.inside().Hash()
}

// Codes appends the codes of a component to dst and returns it, for tests and tools. A field has one code; a unit
// vector has two; a quaternion has four: the index of the largest part, then the codes of the other three; a text has
// its length, then its bytes, four to a code, the first in the lowest bits, as many codes as its max takes. An entity
// has its ID in Arche and, from bit 32 on, its generation.
//
// Panics if the component is neither a value of a registered type nor a pointer to one.
func (s *Schema) Codes(component any, dst []uint64) []uint64 {
	return s.inside().Codes(component, dst)
}

// CodesAfter is [Schema.Codes] for a component of which a server recorded the given codes last: it returns those again
// as long as each number is within its field's margin.
//
// Panics as Codes does, and if the recorded ones are no codes of the component.
func (s *Schema) CodesAfter(component any, recorded, dst []uint64) []uint64 {
	return s.inside().CodesAfter(component, recorded, dst)
}
