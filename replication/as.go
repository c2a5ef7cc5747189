package replication

import "github.com/arche-replicate/arche-replicate/replication/internal/schema"

// As replicates values of type T through a twin of type S: what goes over the wire are the fields of S, by its tags. It is for
// components that hold more than is to be sent, in a form that can't be, such as a plan that is a tree of pointers, of which
// clients shall see the goal.
//
// T is the component's own type or that of fields in it, arrays and nested structs included: of those with the given paths, or
// of all if there are none. A field's own tag counts for S, if that is no struct. Paths are those of [Field].
//
// to is called at every capture. It sets a zero S from a T, which it must not change, nor keep pointers into. from is called
// when a new state is applied. It sets a T, which may be zero or have any value that to and from gave it, from an S; fields that S
// says nothing of it leaves alone. Both must do with zero values, must not touch the world, and must depend on nothing else: the same
// T gives the same S. Servers and clients on several goroutines may call them at the same time.
//
// S has no entities and no relations that are replicated: what they are at the client may change when no function is called. Send
// those in fields of their own.
//
// On the wire S is all there is. So the other end may as well register S itself under the component's name.
//
// Panics if a function is nil.
func As[T, S any](to func(from *T, to *S), from func(from *S, to *T), paths ...string) ComponentOption {
	if to == nil || from == nil {
		panic("replication: As needs two functions, one for each direction")
	}
	return useConversion(&schema.Twin[T, S]{To: to, From: from}, paths)
}
