package soak

import (
	"math/rand/v2"
	"reflect"
	"unsafe"

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/replication"
)

// A cell is a number, a text or a reference read from a component. u has the bits of a number, or
// the packed NetID of a reference in the server's world.
type cell struct {
	u uint64
	s string
	e ecs.Entity
}

// A leaf is a field that is replicated as one value: a number, a text, a direction, an entity.
type leaf struct {
	path string
	at   int // its first cell in the component
	n    int // its cells
	ref  bool

	read  func(p unsafe.Pointer, out []cell)
	drift func(p unsafe.Pointer)            // changes steadily
	jump  func(g *chance, p unsafe.Pointer) // changes to anything, including invalid values
	fits  func(want, got []cell) bool       // got is what the documented rule makes of want
}

// A local is a field that is not replicated and belongs to the receiver.
type local struct {
	path string
	at   uintptr
}

// A fieldSpec is a random field: its type, its tag, and its leaves at an offset in a component.
type fieldSpec struct {
	typ    reflect.Type
	tag    string
	opts   map[string]replication.ComponentOption
	leaves func(path string, at uintptr, c *cells)
}

// cells collects the leaves of a component.
type cells struct {
	leaves []leaf
	locals []local
	count  int
	skips  int // fields that are not replicated
}

func (c *cells) add(l leaf) {
	l.at = c.count
	c.count += l.n
	c.leaves = append(c.leaves, l)
}

// chance is the only source of randomness in an episode.
type chance struct {
	*rand.Rand
	someone func() ecs.Entity // an entity of the world, alive or dead, or the zero entity
}

func newChance(seed, sequence uint64) *chance {
	return &chance{Rand: rand.New(rand.NewPCG(seed, sequence)), someone: func() ecs.Entity { return ecs.Entity{} }}
}

func (g *chance) one(in int) bool { return g.IntN(in) == 0 }

func (g *chance) between(low, high float64) float64 { return low + (high-low)*g.Float64() }

func pick[T any](g *chance, of ...T) T { return of[g.IntN(len(of))] }

// at returns a pointer to a T inside a component.
func at[T any](p unsafe.Pointer, offset uintptr) *T { return (*T)(unsafe.Add(p, offset)) }

// lift makes a leaf of a T at an offset from functions of T.
func lift[T any](path string, offset uintptr, n int, read func(v *T, out []cell), drift func(v *T), jump func(g *chance, v *T),
	fits func(want, got []cell) bool,
) leaf {
	return leaf{
		path: path, n: n, fits: fits,
		read:  func(p unsafe.Pointer, out []cell) { read(at[T](p, offset), out) },
		drift: func(p unsafe.Pointer) { drift(at[T](p, offset)) },
		jump:  func(g *chance, p unsafe.Pointer) { jump(g, at[T](p, offset)) },
	}
}

// simple is a field of a T that is one leaf.
func simple[T any](tag string, n int, read func(v *T, out []cell), drift func(v *T),
	jump func(g *chance, v *T), fits func(want, got []cell) bool,
) fieldSpec {
	return fieldSpec{typ: reflect.TypeFor[T](), tag: tag, leaves: func(path string, offset uintptr, c *cells) {
		c.add(lift(path, offset, n, read, drift, jump, fits))
	}}
}

func sameCells(want, got []cell) bool {
	for i := range want {
		if want[i] != got[i] {
			return false
		}
	}
	return true
}
