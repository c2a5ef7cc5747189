package apply

import (
	"fmt"
	"reflect"
	"slices"
	"unsafe"

	"github.com/arche-replicate/arche-replicate/delta"

	"github.com/arche-replicate/arche-replicate/replication/internal/archeutil"
	"github.com/arche-replicate/arche-replicate/replication/internal/field"
	"github.com/arche-replicate/arche-replicate/replication/internal/receive"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// Mirrored is the content of replication.Replica. A world may have replicas of several clients.
type Mirrored struct {
	ID wire.NetID
	By *Applier // the client's
}

// worldView knows what a client's world shows: which entity is the replica of a slot, and which
// components it has.
type worldView struct {
	schema *schema.Schema
	recv   *receive.Receiver

	World      *ecs.World
	Components []ecs.ID // none for resources
	Marker     ecs.ID
	mark       archeutil.WorldWatch
	Resources  archeutil.ResourceTypes
	Replicas   replicaTable
	Replaced   wire.ComponentSet // what package interpolation overwrites, with targets: Verify leaves it out
	Withheld   Withheld          // what package predict writes: Verify leaves it out, too

	codes []uint32 // scratch memory for a component's codes
	lock  ecs.Mask // of no component, for the query that locks the world
}

// newWorldView returns a view of a world that shows nothing.
func newWorldView(w *ecs.World, s *schema.Schema, marker ecs.ID, recv *receive.Receiver) worldView {
	v := worldView{schema: s, recv: recv, World: w, Marker: marker, mark: archeutil.WatchWorld(w)}
	for i := range s.Components {
		id := ecs.ID{} // none for resources
		if !s.Components[i].Resource {
			id = ecs.TypeID(w, s.Components[i].Typ)
		}
		v.Components = append(v.Components, id)
	}
	v.Resources.Init(w, s)
	return v
}

// Intact reports whether the world was not reset since the last Frame, so that the replicas'
// entities are valid.
func (v *worldView) Intact() bool { return v.mark.Intact() }

// write writes a row into a component at p.
func (v *worldView) write(comp *schema.Component, p unsafe.Pointer, row []uint32) {
	if len(comp.StandIns) == 0 {
		comp.Write(p, row)
		return
	}
	v.convert(comp, p, row)
}

// convert is write for a component that functions of the user convert. They may neither move components nor end
// entities meanwhile: the world is locked, so that Arche panics in the function that tries.
func (v *worldView) convert(comp *schema.Component, p unsafe.Pointer, row []uint32) {
	q := v.World.Query(&v.lock)
	defer q.Close()
	comp.Write(p, row)
}

// Entity returns the entity with a NetID.
func (v *worldView) Entity(id wire.NetID) (ecs.Entity, bool) {
	m := v.Replicas.At(id.Slot)
	if m == nil || !v.Intact() || !m.Shown || m.Removed || m.generation != id.Generation ||
		!archeutil.Alive(v.World, m.Entity) {
		return ecs.Entity{}, false
	}
	return m.Entity, true
}

// Named returns the entity that the words of a reference name, or the zero entity if the world does not show it.
func (v *worldView) Named(words []uint32) ecs.Entity {
	if words[0] == 0 {
		return ecs.Entity{}
	}
	e, _ := v.Entity(wire.NetID{Slot: words[0] - 1, Generation: uint16(words[1])})
	return e
}

// NetID returns the NetID of an entity, which may be any handle.
func (v *worldView) NetID(e ecs.Entity) (wire.NetID, bool) {
	if !v.Intact() {
		return wire.NetID{}, false
	}
	m := (*Mirrored)(archeutil.LookUp(v.World, e, v.Marker))
	if m == nil {
		return wire.NetID{}, false
	}
	if own, ok := v.Entity(m.ID); !ok || own != e {
		return wire.NetID{}, false
	}
	return m.ID, true
}

// Tick returns the tick of the state that an entity shows.
func (v *worldView) Tick(e ecs.Entity) (delta.Tick, bool) {
	id, ok := v.NetID(e)
	if !ok {
		return 0, false
	}
	return v.Replicas.At(id.Slot).Tick, true
}

// KnownUntil returns up to which tick the state that an entity shows is known to have been valid.
func (v *worldView) KnownUntil(e ecs.Entity) (delta.Tick, bool) {
	id, ok := v.NetID(e)
	if !ok {
		return 0, false
	}
	m, settled := v.Replicas.At(id.Slot), &v.recv.Settled
	rested := m.Tick
	switch _, next := m.Held.Around(m.Tick); {
	case next != nil:
		if until, ok := next.Rested(); ok && until.After(rested) {
			rested = until
		}
	case m.Any && m.Newest == m.Tick && settled.Known && settled.Tick.After(rested):
		rested = settled.Tick
	}
	return rested, true
}

// Each calls yield for every entity, in the order of slots, until it returns false or the world is reset.
func (v *worldView) Each(yield func(wire.NetID, ecs.Entity) bool) {
	for i, page := range v.Replicas.Pages {
		for j := range page {
			m := &page[j]
			if !m.Shown || m.Removed || !v.Intact() || !archeutil.Alive(v.World, m.Entity) {
				continue
			}
			id := wire.NetID{Slot: uint32(i*receive.ReplicaPage + j), Generation: m.generation}
			if !yield(id, m.Entity) {
				return
			}
		}
	}
}

// present reports whether a replica's entity is in the world. A hook may have removed it, or all of
// them.
func (v *worldView) present(m *replica) bool {
	return (m.Shown && !m.Removed || m.attached()) && v.Intact() && archeutil.Alive(v.World, m.Entity)
}

// place returns the address of a component of a replica in the world. It is nil if a hook or the
// user removed it.
func (v *worldView) place(m *replica, k int) unsafe.Pointer {
	switch {
	case v.schema.Components[k].Resource:
		return v.Resources.Find(k)
	case !v.present(m):
		return nil
	}
	return v.World.Get(m.Entity, v.Components[k])
}

// Number returns the number of a component type, and panics if it is not registered.
func (v *worldView) Number(name string, t reflect.Type) int {
	for k := range v.schema.Components {
		if v.schema.Components[k].Typ == t {
			return k
		}
	}
	panic(fmt.Sprintf("replication: %s: %v is not registered: the server sends nothing of it", name, t))
}

// sign returns the codes that the server's rows would have for an entity's component.
func (v *worldView) sign(k int, e ecs.Entity, codes []uint32) []uint32 {
	comp := &v.schema.Components[k]
	codes = slices.Grow(codes[:0], comp.Words)[:comp.Words]
	clear(codes)
	p := v.World.Get(e, v.Components[k])
	comp.ReadColumn(codes, p, 1)
	for _, i := range comp.References {
		col := &comp.Columns[i]
		var target ecs.Entity
		if col.Codec.Op == field.OpRelation {
			target = v.World.Relations().Get(e, v.Components[k])
		} else {
			target = comp.ReadEntity(p, i)
		}
		words := codes[col.Word:][:2]
		words[0], words[1] = 0, 0
		if id, ok := v.NetID(target); ok {
			words[0], words[1] = id.Slot+1, uint32(id.Generation)
		}
	}
	return codes
}

// of returns the NetID that a state links to, and whether the state is one of a sub-entity.
func (v *worldView) of(state *receive.HeldState) (id wire.NetID, isSubEntity bool) {
	if v.schema.Link < 0 {
		return wire.NetID{}, false
	}
	row := state.Row(v.schema.Link, 2)
	if row == nil {
		return wire.NetID{}, false
	}
	return wire.NetID{Slot: row[0] - 1, Generation: uint16(row[1])}, true // no link is a slot beyond all others
}

// leaves reports whether a replica's entity is removed in this Frame. The other arguments are the
// results of outlived.
func (v *worldView) leaves(m *replica, some, foreign bool) bool {
	switch {
	case m == nil || !m.Shown:
		return true
	case some && (foreign || !m.Any), m.Dirty && m.Empty:
		return true
	case !m.Dirty:
		return false
	}
	state := m.Held.At(m.Newest)
	if state == nil {
		return false
	}
	_, isSubEntity := v.of(state)
	return isSubEntity || state.Generation != m.generation
}

// removeResources removes what is left of a former session. What the present one has as well is
// about to be taken over.
func (v *worldView) removeResources(m *replica) {
	var next *receive.HeldState
	if m.Any {
		next = m.Held.At(m.Newest)
	}
	set := &m.Layout.Set
	for k := range set.All() {
		if next == nil || !next.Layout.Set.Has(k) {
			v.removeResource(k)
		}
	}
}

// removeResource removes a resource, unless the user did.
func (v *worldView) removeResource(component int) {
	if r, id := v.World.Resources(), v.Resources.IDs[component]; r.Has(id) {
		r.Remove(id)
	}
}

// RelationTypes returns the components that are relations of Arche.
func (v *worldView) RelationTypes() (set wire.ComponentSet) {
	for k, id := range v.Components {
		if info, ok := ecs.ComponentInfo(v.World, id); ok && info.IsRelation && !v.Resources.Set.Has(k) {
			set.Add(k)
		}
	}
	return set
}

// tidyLayouts forgets unused layouts, if it is time. It is called between two packets.
func (v *worldView) tidyLayouts() {
	if !v.recv.Crowded() {
		return
	}
	used := map[*receive.Layout]bool{}
	for _, page := range v.Replicas.Pages {
		for i := range page {
			used[page[i].Layout] = true
		}
	}
	v.recv.SweepLayouts(used)
}
