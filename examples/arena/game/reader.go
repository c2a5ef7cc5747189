package game

import (
	"encoding/binary"
	"encoding/json"
	"hash/fnv"
	"iter"
	"reflect"

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/replication"
)

// A Reader reads an entity as it is replicated: its components and the codes of their fields. It
// uses Arche's ordinary access by entity and shares nothing with the library but the schema, so
// that each can check the other.
type Reader struct {
	world   *ecs.World
	schema  *replication.Schema
	columns []column
}

// A column is a component of all entities.
type column struct {
	name  string
	of    func(e ecs.Entity) any // a pointer to it, nil if the entity has none
	count int                    // of codes
}

// NewReader returns a reader for one world. Its list of components is written by hand: a missing
// one would not be checked, so a test compares the list with NewSchema.
func NewReader(w *ecs.World, s *replication.Schema) *Reader {
	r := &Reader{world: w, schema: s}
	addColumn[Position](r, s)
	addColumn[Heading](r, s)
	addColumn[Ship](r, s)
	addColumn[Hull](r, s)
	addColumn[Ammo](r, s)
	addColumn[Score](r, s)
	addColumn[Shield](r, s)
	addColumn[Bullet](r, s)
	addColumn[PowerUp](r, s)
	addColumn[Match](r, s)
	addColumn[Callsign](r, s)
	return r
}

func addColumn[T any](r *Reader, s *replication.Schema) {
	id := ecs.ComponentID[T](r.world)
	r.columns = append(r.columns, column{
		name: reflect.TypeFor[T]().Name(),
		of: func(e ecs.Entity) any {
			if component := (*T)(r.world.Get(e, id)); component != nil {
				return component
			}
			return nil
		},
		count: len(s.Codes(new(T), nil)),
	})
}

// Codes appends a mask of the components that the entity has, and their codes.
func (r *Reader) Codes(e ecs.Entity, dst []uint64) []uint64 { return r.CodesAfter(e, nil, dst) }

// CodesAfter is Codes for an entity of the server, for which it returned before in the tick before; nil if it was not
// there.
func (r *Reader) CodesAfter(e ecs.Entity, before, dst []uint64) []uint64 {
	mask, had := len(dst), uint64(0)
	if before != nil {
		had, before = before[0], before[1:]
	}
	dst = append(dst, 0)
	for i, column := range r.columns {
		var recorded []uint64
		if had>>i&1 != 0 {
			recorded, before = before[:column.count], before[column.count:]
		}
		component := column.of(e)
		switch {
		case component == nil:
			continue
		case recorded == nil:
			dst = r.schema.Codes(component, dst)
		default:
			dst = r.schema.CodesAfter(component, recorded, dst)
		}
		dst[mask] |= 1 << i
	}
	return dst
}

// JSON returns the entity as encoding/json writes it: its ID and its components by name.
func (r *Reader) JSON(e ecs.Entity, id replication.NetID) ([]byte, error) {
	entity := map[string]any{"id": id.String()}
	for _, column := range r.columns {
		if component := column.of(e); component != nil {
			entity[column.name] = component
		}
	}
	return json.Marshal(entity)
}

// Census is the number of entities of a world, and a sum of their hashes.
type Census struct {
	Entities int
	Sum      uint64
}

// Add counts an entity with its codes.
func (c *Census) Add(id replication.NetID, codes []uint64) {
	h := fnv.New64a()
	var word [8]byte
	write := func(x uint64) {
		binary.LittleEndian.PutUint64(word[:], x)
		_, _ = h.Write(word[:])
	}
	write(uint64(id.Slot))
	write(uint64(id.Generation))
	for _, code := range codes {
		write(code)
	}
	c.Entities++
	c.Sum += h.Sum64()
}

// Census counts the entities of a world.
func (r *Reader) Census(entities iter.Seq2[replication.NetID, ecs.Entity]) (c Census) {
	var codes []uint64
	for id, e := range entities {
		codes = r.Codes(e, codes[:0])
		c.Add(id, codes)
	}
	return c
}
