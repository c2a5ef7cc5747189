package replication

import (
	"reflect"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/mlange-42/arche/ecs"
)

// A replica is what the world shows of a slot.
type replica struct {
	*mirror // what was received

	shown      bool
	facet      bool       // components of another slot's entity: see attach.go
	removed    bool       // the user removed the entity: leave it so
	entity     ecs.Entity // of a facet: that it is attached to, if any
	generation uint16
	tick       delta.Tick
	shape      *shape
	links      uint32                // first of the references in what is shown
	strings    []string              // of its components; see holdStrings
	values     map[int]reflect.Value // the same of those that lead to more
}

// attached reports whether a replica is a facet that is on an entity.
func (m *replica) attached() bool { return m.facet && !m.entity.IsZero() }

// hold keeps a copy of the value of component k.
func (m *replica) hold(k int, v reflect.Value) {
	if m.values == nil {
		m.values = map[int]reflect.Value{}
	}
	if _, ok := m.values[k]; !ok {
		m.values[k] = reflect.New(v.Type()).Elem()
	}
	m.values[k].Set(v)
}

// A replicaTable finds replicas by slot. It has pages where the table of mirrors has some, from the first Apply on that shows
// what is in them.
type replicaTable struct {
	pages [][]replica
}

// at returns the slot's replica, or nil if there is none.
func (t *replicaTable) at(slot uint32) *replica {
	if i := int(slot / mirrorPage); i < len(t.pages) && t.pages[i] != nil {
		return &t.pages[i][slot%mirrorPage]
	}
	return nil
}

// add returns the slot's replica, new if need be. The slot has a mirror.
func (t *replicaTable) add(slot uint32, mirrors *mirrorTable) *replica {
	if m := t.at(slot); m != nil {
		return m
	}
	t.grow(int(slot/mirrorPage), mirrors)
	return t.at(slot)
}

// grow makes a page.
func (t *replicaTable) grow(i int, mirrors *mirrorTable) {
	if i >= len(t.pages) {
		t.pages = append(t.pages, make([][]replica, i+1-len(t.pages))...)
	}
	page := make([]replica, mirrorPage)
	for j := range page {
		page[j].mirror = &mirrors.pages[i][j]
	}
	t.pages[i] = page
}
