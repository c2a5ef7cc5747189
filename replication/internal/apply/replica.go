package apply

import (
	"reflect"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/receive"
	"github.com/mlange-42/arche/ecs"
)

// A replica is what the world shows of a slot.
type replica struct {
	*receive.Replica // what was received of it

	Shown      bool
	SubEntity  bool       // it is components of another slot's entity; see attach.go
	Removed    bool       // the user removed the entity; do not respawn it
	ended      bool       // the server removed the entity; it lingers, or did until the server spawned it anew
	partly     bool       // a function of the user's panicked while rows were written: they may be of several states
	targeted   bool       // its relation has got its target since it came
	Entity     ecs.Entity // of a sub-entity: the entity that has its components, if any
	generation uint16
	Tick       delta.Tick
	Layout     *receive.Layout
	Links      uint32                // first of its references
	Strings    []string              // held for its components; see held_strings.go
	values     map[int]reflect.Value // copies of components with pointers
}

// attached reports whether a replica is a sub-entity whose components are on an entity.
func (m *replica) attached() bool { return m.SubEntity && !m.Entity.IsZero() }

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

// A replicaTable finds replicas by slot. It has a page where the receiver's table has one, once
// Frame has shown a slot on it.
type replicaTable struct {
	Pages [][]replica
}

// At returns the slot's replica, or nil if there is none.
func (t *replicaTable) At(slot uint32) *replica {
	if i := int(slot / receive.ReplicaPage); i < len(t.Pages) && t.Pages[i] != nil {
		return &t.Pages[i][slot%receive.ReplicaPage]
	}
	return nil
}

// add returns the slot's replica, and makes one if there is none. The slot has a page in the
// receiver's table.
func (t *replicaTable) add(slot uint32, received *receive.ReplicaTable) *replica {
	if m := t.At(slot); m != nil {
		return m
	}
	t.grow(int(slot/receive.ReplicaPage), received)
	return t.At(slot)
}

// grow makes page i.
func (t *replicaTable) grow(i int, received *receive.ReplicaTable) {
	if i >= len(t.Pages) {
		t.Pages = append(t.Pages, make([][]replica, i+1-len(t.Pages))...)
	}
	page := make([]replica, receive.ReplicaPage)
	for j := range page {
		page[j].Replica = &received.Pages[i][j]
	}
	t.Pages[i] = page
}
