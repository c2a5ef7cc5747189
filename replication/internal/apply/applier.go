// Package apply brings the world of a client up to date with the states that it received.
package apply

import (
	"fmt"

	"github.com/arche-replicate/arche-replicate/replication/internal/archeutil"
	"github.com/arche-replicate/arche-replicate/replication/internal/counters"
	"github.com/arche-replicate/arche-replicate/replication/internal/exclusive"
	"github.com/arche-replicate/arche-replicate/replication/internal/receive"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// Applier makes a world show what was received. It knows the receiver, which does not know it, and is told
// what it needs of the session.
type Applier struct {
	Schema *schema.Schema
	stats  *counters.ClientCounters
	recv   *receive.Receiver

	Calls     *exclusive.Guard
	View      worldView
	Referrers referrers
	relations archeutil.Relations
	names     archeutil.EntityNames // of what was ever mirrored, if there are entities in messages or inputs
	Hooks     hooks
	Expected  expectations
	Hashes    hashCheck
	spawnWith []ecs.ID // components of the user's for all that is spawned

	instance      uint64 // of the present session's NetIDs
	ShownInstance uint64 // of those that the world shows
	leftover      bool   // the world may show what the present session does not know

	scratch struct{ add, remove []ecs.ID }
}

// Init prepares an applier, whose parts know each other by where it is.
func (a *Applier) Init(w *ecs.World, s *schema.Schema, marker ecs.ID, recv *receive.Receiver, stats *counters.ClientCounters, slots uint32, spawnWith []ecs.ID) {
	a.Schema, a.stats, a.recv, a.spawnWith = s, stats, recv, spawnWith
	a.View = newWorldView(w, s, marker, recv)
	a.Referrers.Limit = slots
	a.Hooks.schema, a.Hooks.recv, a.Hooks.view, a.Hooks.referrers = s, recv, &a.View, &a.Referrers
	a.Expected.schema, a.Expected.stats, a.Expected.view = s, stats, &a.View
	a.Hashes = hashCheck{schema: s, stats: stats, recv: recv, view: &a.View}
	a.checkSpawnComponents()
}

// Show brings the world up to date with what was received. complete reports whether all has come that was there when the session
// began.
func (a *Applier) Show(complete bool) {
	a.NoticeReset()
	a.Expected.Expire()
	some, foreign := a.outlived(complete)
	a.announce(some, foreign)
	a.takeOver(some, foreign)
	for _, slot := range a.recv.Dirty {
		m := a.View.Replicas.add(slot, &a.recv.Replicas)
		m.Dirty = false
		a.applyReplica(slot, m)
	}
	a.recv.Dirty = a.recv.Dirty[:0]
	a.mendReferences()
	a.notify()
	a.View.tidyLayouts()
}

// RemoveAll removes all that is mirrored.
func (a *Applier) RemoveAll() {
	a.NoticeReset()
	if a.Hooks.Parting {
		a.runHooks(func() { a.Hooks.announceEnd() })
	}
	for i, page := range a.View.Replicas.Pages {
		for j := range page {
			if page[j].Shown || page[j].SubEntity {
				page[j].Any = false // of resources, all go
				a.removeEntity(uint32(i*receive.ReplicaPage+j), &page[j])
			}
		}
	}
	a.recv.ForgetReplicas()
	a.View.Replicas.Pages = nil
}

// runHooks calls what calls hooks, and sees that these leave the world in order.
func (a *Applier) runHooks(call func()) {
	was := a.Calls.Open()
	a.Hooks.running = true
	defer func() { a.Hooks.running = false; a.Calls.Leave(was) }()
	call()
	if a.View.World.IsLocked() {
		panic("replication: a hook has left the world locked: close the queries that it makes")
	}
	a.NoticeReset()
}

// announce calls the hooks for what this Apply is about to remove.
func (a *Applier) announce(some, foreign bool) {
	if a.Hooks.Parting {
		a.runHooks(func() { a.Hooks.announceAll(some, foreign) })
	}
}

// notify calls the hooks for what came and changed in this Apply.
func (a *Applier) notify() {
	if len(a.Hooks.events) > 0 {
		a.runHooks(func() { a.Hooks.callAll() })
	}
}

// NoticeReset makes all mirrors be spawned anew if the world was reset. The client holds
// the newest state of each, so that takes no traffic.
func (a *Applier) NoticeReset() {
	if a.View.Intact() {
		return
	}
	a.View.mark.Set()
	a.Expected.reset()
	for i, page := range a.View.Replicas.Pages {
		for j := range page {
			m := &page[j]
			switch {
			case m.SubEntity:
				a.forgetSubEntity(m)
			case m.Shown:
				a.forgetEntity(uint32(i*receive.ReplicaPage+j), m)
			default:
				continue
			}
			if !m.Dirty && !m.Empty && m.Held.At(m.Newest) != nil {
				a.recv.MarkDirty(uint32(i*receive.ReplicaPage+j), m.Replica)
			}
		}
	}
}

// What becomes of mirrored entities when a new session begins. NetIDs are those of a
// server: if it is the same one, an entity that comes again is the entity that was. What
// does not come again has ended meanwhile, or is not to be seen any more; that is known
// once the session is complete. The NetIDs of another server mean other entities.

// BeginShowing notes that a session begins with a server of the given origin. outdated reports whether what the world shows may
// mean other entities to it, whoever it is.
func (a *Applier) BeginShowing(instance uint64, outdated bool) {
	a.instance, a.Hashes.Divergence = instance, nil
	if outdated {
		a.ShownInstance = ^instance // whoever it was
	}
	a.NoteLeftover()
}

// NoteLeftover notes that of what the world shows no states are known any more.
func (a *Applier) NoteLeftover() {
	for _, page := range a.View.Replicas.Pages {
		for j := range page {
			a.leftover = a.leftover || page[j].Shown || page[j].SubEntity
		}
	}
}

// outlived reports whether the world shows something of sessions before that is known to
// be no more, and whether that is all of it, since the server is another one.
func (a *Applier) outlived(complete bool) (some, foreign bool) {
	foreign = a.recv.AnyState && a.ShownInstance != a.instance
	return a.recv.AnyState && a.leftover && (foreign || complete), foreign
}

// takeOver removes what is left of sessions before, as soon as it is known to be no more.
func (a *Applier) takeOver(some, foreign bool) {
	if a.recv.AnyState {
		a.ShownInstance = a.instance
	}
	if !some {
		return
	}
	a.leftover = false
	for i, page := range a.View.Replicas.Pages {
		for j := range page {
			if m := &page[j]; (m.Shown || m.SubEntity) && (foreign || !m.Any) {
				a.removeEntity(uint32(i*receive.ReplicaPage+j), m)
			}
		}
	}
}

// NameEntities names what is mirrored now. The names of the client tell what was mirrored ever.
func (a *Applier) NameEntities(comp *schema.Component, rows []uint32) {
	for _, i := range comp.References {
		for w := comp.Columns[i].Word; w < len(rows); w += comp.Words {
			id, generation := rows[w], rows[w+1]
			slot, counter := a.names.Of(id, generation)
			if e := a.EntityOf(wire.NetID{Slot: slot - 1, Generation: uint16(counter)}); slot == 0 || e.ID() != id || e.Generation() != generation {
				slot, counter = 0, 0
			}
			rows[w], rows[w+1] = slot, counter
		}
	}
}

// EntityOf returns what the server may have meant. In a session with another server the world shows for a while what the
// former one named.
func (a *Applier) EntityOf(id wire.NetID) ecs.Entity {
	if a.ShownInstance != a.instance {
		return ecs.Entity{}
	}
	e, _ := a.View.Entity(id)
	return e
}

func (a *Applier) Verify() *Divergence {
	if !a.View.Intact() {
		return nil
	}
	for i, page := range a.View.Replicas.Pages {
		for j := range page {
			m := &page[j]
			if !a.View.present(m) {
				continue
			}
			state := m.Held.At(m.Tick)
			if state == nil || state.Generation != m.generation {
				continue
			}
			if d := a.View.verifyEntity(m, state); d != nil {
				d.NetID = wire.NetID{Slot: uint32(i*receive.ReplicaPage + j), Generation: m.generation}
				if m.SubEntity {
					d.NetID, _ = a.Referrers.linked(a.Schema.Link, m)
				}
				return d
			}
		}
	}
	return nil
}

// checkSpawnComponents panics if the components can't be on all mirrored entities.
func (a *Applier) checkSpawnComponents() {
	for i, id := range a.spawnWith {
		info, ok := ecs.ComponentInfo(a.View.World, id)
		if !ok {
			panic(fmt.Sprintf("replication: WithSpawnComponents: the client's world has no component %v: use IDs of this world", id))
		}
		var why string
		switch {
		case id == a.View.Marker:
			why = "every mirrored entity has it anyway"
		case info.IsRelation:
			why = "an entity has room for one relation, which may be the server's"
		}
		for k, own := range a.View.Components {
			if id == own && !a.View.Resources.Set.Has(k) {
				why = "it is in the schema, so the server says which entities have it"
			}
		}
		for _, other := range a.spawnWith[:i] {
			if id == other {
				why = "it is named twice"
			}
		}
		if why != "" {
			panic(fmt.Sprintf("replication: WithSpawnComponents: %v: %s", info.Type, why))
		}
	}
}
