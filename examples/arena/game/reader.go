package game

import (
	"encoding/binary"
	"encoding/json"
	"hash/fnv"
	"iter"
	"reflect"

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/predict"
)

// A Reader reads an entity as it is replicated: its components and the codes of their fields. It
// uses Arche's ordinary access by entity and shares nothing with the library but the schema, so
// that each can check the other.
type Reader struct {
	world   *ecs.World
	schema  *replication.Schema
	columns []column

	predicted, parked ecs.ID
}

// A column is a component of all entities.
type column struct {
	name  string
	of    func(e ecs.Entity) any // a pointer to it, nil if the entity has none
	count int                    // of codes
	state bool                   // the model changes it
}

// NewReader returns a reader for one world. Its list of components is written by hand: a missing
// one would not be checked, so a test compares the list with NewSchema. It has what all clients get.
func NewReader(w *ecs.World, s *replication.Schema) *Reader {
	r := &Reader{
		world: w, schema: s,
		predicted: ecs.ComponentID[predict.Predicted](w), parked: ecs.ComponentID[predict.Parked](w),
	}
	addColumn[Ship](r, s)
	addColumn[Position](r, s)
	addColumn[Heading](r, s)
	addColumn[Ammo](r, s)
	for i := range r.columns {
		r.columns[i].state = true
	}
	addColumn[Hull](r, s)
	addColumn[Score](r, s)
	addColumn[Shield](r, s)
	addColumn[Protection](r, s)
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
	return r.codes(e, before, dst, true)
}

// CodesBeside is Codes for an entity of a client, with those of the server in place of what the client predicts.
func (r *Reader) CodesBeside(e ecs.Entity, server, dst []uint64) []uint64 {
	return r.codes(e, server, dst, false)
}

// codes is Codes for an entity of which others are known: from the tick before, or of the server.
func (r *Reader) codes(e ecs.Entity, others, dst []uint64, after bool) []uint64 {
	ahead := r.world.Has(e, r.predicted) || r.world.Has(e, r.parked)
	mask, had := len(dst), uint64(0)
	if others != nil {
		had, others = others[0], others[1:]
	}
	dst = append(dst, 0)
	for i := range r.columns {
		column := &r.columns[i]
		var of []uint64
		if had>>i&1 != 0 {
			of, others = others[:column.count], others[column.count:]
		}
		component := column.of(e)
		switch {
		case ahead && column.state && of != nil: // what is parked lacks the component
			dst = append(dst, of...)
		case component == nil:
			continue
		case after && of != nil:
			dst = r.schema.CodesAfter(component, of, dst)
		default:
			dst = r.schema.Codes(component, dst)
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
