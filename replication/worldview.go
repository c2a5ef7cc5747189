package replication

import (
	"fmt"
	"reflect"
	"slices"
	"unsafe" // for the name of the type that Arche hands out; no pointer is computed or converted here

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/archeutil"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/mlange-42/arche/ecs"
)

// worldView is what a client's world shows: which entity is the replica of a slot, and what it has.
type worldView struct {
	schema *schema.Schema
	recv   *receiver

	world      *ecs.World
	components []ecs.ID // none for resources
	marker     ecs.ID
	mark       archeutil.WorldWatch
	resources  archeutil.ResourceTypes
	replicas   replicaTable

	codes []uint32 // scratch memory, for those of a component in the world
}

func newWorldView(w *ecs.World, s *schema.Schema, recv *receiver) worldView {
	v := worldView{schema: s, recv: recv, world: w, marker: MirroredID(w), mark: archeutil.WatchWorld(w)}
	for i := range s.Components {
		id := ecs.ID{} // none for resources
		if !s.Components[i].Resource {
			id = ecs.TypeID(w, s.Components[i].Typ)
		}
		v.components = append(v.components, id)
	}
	v.resources.Init(w, s)
	return v
}

// intact reports whether the world was not reset since the last Apply: then the mirrors'
// entities are what they were.
func (v *worldView) intact() bool { return v.mark.Intact() }

func (v *worldView) entity(id NetID) (ecs.Entity, bool) {
	m := v.replicas.at(id.Slot)
	if m == nil || !v.intact() || !m.shown || m.removed || m.generation != id.Generation || !archeutil.Alive(v.world, m.entity) {
		return ecs.Entity{}, false
	}
	return m.entity, true
}

func (v *worldView) netID(e ecs.Entity) (NetID, bool) {
	if !v.intact() {
		return NetID{}, false
	}
	m := (*Mirrored)(archeutil.LookUp(v.world, e, v.marker))
	if m == nil {
		return NetID{}, false
	}
	if own, ok := v.entity(m.id); !ok || own != e {
		return NetID{}, false
	}
	return m.id, true
}

func (v *worldView) each(fn func(id NetID, e ecs.Entity, tick uint32)) {
	if !v.intact() {
		return
	}
	for i, page := range v.replicas.pages {
		for j := range page {
			m := &page[j]
			if m.shown && !m.removed && archeutil.Alive(v.world, m.entity) {
				fn(NetID{uint32(i*mirrorPage + j), m.generation}, m.entity, uint32(m.tick))
			}
		}
	}
}

// present reports whether the mirror's entity is in the world: a hook may have removed it,
// or all of them.
func (v *worldView) present(m *replica) bool {
	return (m.shown && !m.removed || m.attached()) && v.intact() && archeutil.Alive(v.world, m.entity)
}

// place returns where the world has a component of a mirror, or nil: a hook or the user may have removed it.
func (v *worldView) place(m *replica, k int) unsafe.Pointer {
	switch {
	case v.schema.Components[k].Resource:
		return v.resources.Find(k)
	case !v.present(m):
		return nil
	}
	return v.world.Get(m.entity, v.components[k])
}

// number returns the number of a component type.
func (v *worldView) number(name string, t reflect.Type) int {
	for k := range v.schema.Components {
		if v.schema.Components[k].Typ == t {
			return k
		}
	}
	panic(fmt.Sprintf("replication: %s: %v is not registered: the server says nothing of it", name, t))
}

// sign returns the codes of an entity's component as they are in the server's rows.
func (v *worldView) sign(k int, e ecs.Entity, codes []uint32) []uint32 {
	comp := &v.schema.Components[k]
	codes = slices.Grow(codes[:0], comp.Words)[:comp.Words]
	clear(codes)
	p := v.world.Get(e, v.components[k])
	comp.ReadColumn(codes, p, 1)
	for _, i := range comp.References {
		col := &comp.Columns[i]
		var target ecs.Entity
		if col.Codec.Op == schema.OpRelation {
			target = v.world.Relations().Get(e, v.components[k])
		} else {
			target = comp.ReadEntity(p, i)
		}
		words := codes[col.Word:][:2]
		words[0], words[1] = 0, 0
		if id, ok := v.netID(target); ok {
			words[0], words[1] = id.Slot+1, uint32(id.Generation)
		}
	}
	return codes
}

// of returns what a state links to, and whether it is that of a facet.
func (v *worldView) of(state *heldState) (id NetID, facet bool) {
	if v.schema.Link < 0 {
		return NetID{}, false
	}
	row := state.row(v.schema.Link, 2)
	if row == nil {
		return NetID{}, false
	}
	return NetID{row[0] - 1, uint16(row[1])}, true // nothing is a slot beyond all others
}

// leaves reports whether the entity of a mirror is removed in this Apply.
func (v *worldView) leaves(m *replica, some, foreign bool) bool {
	switch {
	case m == nil || !m.shown:
		return true
	case some && (foreign || !m.any), m.dirty && m.empty:
		return true
	case !m.dirty:
		return false
	}
	state := m.held.at(m.newest)
	if state == nil {
		return false
	}
	_, facet := v.of(state)
	return facet || state.generation != m.generation
}

// removeResources removes what is left of a session that is over. What the present one has
// as well is about to be taken over.
func (v *worldView) removeResources(m *replica) {
	var next *heldState
	if m.any {
		next = m.held.at(m.newest)
	}
	set := &m.shape.set
	for k := set.Next(0); k >= 0; k = set.Next(k + 1) {
		if next == nil || !next.shape.set.Has(k) {
			v.removeResource(k)
		}
	}
}

// removeResource removes a resource, unless the user did.
func (v *worldView) removeResource(component int) {
	if r, id := v.world.Resources(), v.resources.IDs[component]; r.Has(id) {
		r.Remove(id)
	}
}

// relationTypes returns which components are relations of Arche.
func (v *worldView) relationTypes() (set delta.Set) {
	for k, id := range v.components {
		if info, ok := ecs.ComponentInfo(v.world, id); ok && info.IsRelation && !v.resources.Set.Has(k) {
			set.Add(k)
		}
	}
	return set
}

// tidyShapes makes shapes be forgotten, if it is time. It is called between two packets.
func (v *worldView) tidyShapes() {
	if !v.recv.crowded() {
		return
	}
	used := map[*shape]bool{}
	for _, page := range v.replicas.pages {
		for i := range page {
			used[page[i].shape] = true
		}
	}
	v.recv.sweepShapes(used)
}
