// Package apply writes received states into a client's world. Package receive supplies the states
// and which of them are new; Client.Frame calls Show once per frame. It spawns, changes and removes
// entities and resources, resolves references, adopts expected entities, calls the user's hooks,
// and compares the world with the states on request.
package apply

import (
	"fmt"

	"github.com/arche-replicate/arche-replicate/replication/internal/archeutil"
	"github.com/arche-replicate/arche-replicate/replication/internal/blend"
	"github.com/arche-replicate/arche-replicate/replication/internal/counters"
	"github.com/arche-replicate/arche-replicate/replication/internal/exclusive"
	"github.com/arche-replicate/arche-replicate/replication/internal/receive"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// Applier makes a world show what was received. It reads the receiver, which knows nothing of it;
// what it needs of the session is passed as arguments.
type Applier struct {
	Schema *schema.Schema
	stats  *counters.ClientCounters
	recv   *receive.Receiver

	Calls     *exclusive.Guard
	View      worldView
	Referrers referrers
	relations archeutil.Relations
	names     archeutil.EntityNames // of all entities ever shown, if messages or inputs have entities
	Hooks     hooks
	Expected  expectations
	Hashes    hashCheck
	lingering lingering
	Drawn     []func() // to be called when what is predicted was drawn
	// Shown returns the moment that package interpolation shows, a while behind the newest states; nil: there is none.
	Shown     func() (at blend.Time, ok bool)
	spawnWith []ecs.ID // components that every spawned entity gets besides its own
	Resets    int      // of the world that were noticed

	instance      uint64 // server instance of the present session
	ShownInstance uint64 // server instance of what the world shows
	leftover      bool   // the world may show entities of a former session

	pending pending
	scratch struct{ add, remove []ecs.ID }
}

// Init prepares an applier. It must not be moved afterwards, since its parts point to each other.
func (a *Applier) Init(w *ecs.World, s *schema.Schema, marker ecs.ID, recv *receive.Receiver,
	stats *counters.ClientCounters, slots uint32, spawnWith []ecs.ID,
) {
	a.Schema, a.stats, a.recv, a.spawnWith = s, stats, recv, spawnWith
	a.View = newWorldView(w, s, marker, recv)
	a.pending = pending{schema: s, rows: make([][]schema.Written, len(s.Components))}
	a.Referrers.Limit = slots
	a.Hooks.schema, a.Hooks.recv, a.Hooks.view, a.Hooks.referrers = s, recv, &a.View, &a.Referrers
	a.Expected.schema, a.Expected.stats, a.Expected.view = s, stats, &a.View
	a.Hashes = hashCheck{schema: s, stats: stats, recv: recv, view: &a.View}
	a.checkSpawnComponents()
}

// Show updates the world to what was received. complete reports whether everything has arrived that
// existed when the session began, ticks how many passed since the last call.
func (a *Applier) Show(complete bool, ticks uint32) {
	defer a.Hooks.begin()()
	a.NoticeReset()
	a.lingering.update(a.recv, &a.View, a.Shown)
	// After a pause, what came in the meantime was in time for what the client expected when the pause began.
	a.Expected.Expire(min(ticks, 1))
	some, foreign := a.outlived(complete)
	a.announce(some, foreign)
	a.takeOver(some, foreign)
	a.showDirty()
	a.Expected.Expire(ticks - min(ticks, 1))
	a.mendReferences()
	a.notify()
	a.View.tidyLayouts()
}

// showDirty makes the world show the newest states of all slots whose newest states it does not show.
func (a *Applier) showDirty() {
	shown := 0
	defer func() { // also if a function of the user panics
		a.pending.flush() // later, the values may be elsewhere
		a.recv.Dirty = append(a.recv.Dirty[:0], a.recv.Dirty[shown:]...)
	}()
	for _, slot := range a.recv.Dirty {
		m := a.View.Replicas.add(slot, &a.recv.Replicas)
		if !a.update(slot, m) {
			a.pending.flush()
			a.applyReplica(slot, m)
		}
		m.Dirty = false
		shown++
	}
}

// RemoveAll removes everything that the world shows.
func (a *Applier) RemoveAll() {
	defer a.Hooks.begin()()
	a.NoticeReset()
	a.Hooks.drop() // there are some if a function of the user's panicked in the last Frame
	if a.Hooks.Parting {
		a.runHooks(func() { a.Hooks.announceEnd(false) })
	}
	for i, page := range a.View.Replicas.Pages {
		for j := range page {
			if page[j].Shown || page[j].SubEntity {
				page[j].Any = false // so that all resources go
				a.removeEntity(uint32(i*receive.ReplicaPage+j), &page[j])
			}
		}
	}
	a.recv.ForgetReplicas()
	a.View.Replicas.Pages = nil
}

// Detach leaves what the world shows to the user. Only what the server has removed already goes, for which hooks are
// called.
func (a *Applier) Detach() {
	defer a.Hooks.begin()()
	a.NoticeReset()
	a.Hooks.drop()
	if a.Hooks.Parting {
		a.runHooks(func() { a.Hooks.announceEnd(true) })
	}
	a.View.holdForGood()
	for i, page := range a.View.Replicas.Pages {
		for j := range page {
			switch m, slot := &page[j], uint32(i*receive.ReplicaPage+j); {
			case a.View.Resources.In(int(slot)) || !a.View.present(m):
			case m.ended:
				a.removeEntity(slot, m)
			case a.View.World.Has(m.Entity, a.View.Marker):
				a.View.World.Remove(m.Entity, a.View.Marker)
			}
		}
	}
	a.recv.ForgetReplicas()
	a.View.Replicas.Pages = nil
}

// runHooks calls a function that runs hooks, and checks the state of the world afterwards.
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

// announce calls the hooks for everything that this Frame is about to remove.
func (a *Applier) announce(some, foreign bool) {
	if a.Hooks.Parting {
		a.runHooks(func() { a.Hooks.announceAll(some, foreign) })
	}
}

// notify calls the hooks for everything that came or changed in this Frame.
func (a *Applier) notify() {
	if len(a.Hooks.events) > 0 {
		a.runHooks(func() { a.Hooks.callAll() })
	}
}

// NoticeReset respawns all entities if the world was reset. The client holds their newest states,
// so that needs no traffic.
func (a *Applier) NoticeReset() {
	if a.View.Intact() {
		return
	}
	a.Resets++
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

// Entities of former sessions. NetIDs belong to a server instance. If a new session is with the
// same instance, an entity with the same NetID is the same entity. One that does not come again has
// ended, or is no longer visible; that is known when the session is complete. If the instance is
// another one, all NetIDs mean other entities.

// BeginShowing starts a session with a server instance. outdated reports that NetIDs may have been
// reused since the world was updated, even if the instance is the same.
func (a *Applier) BeginShowing(instance uint64, outdated bool) {
	a.instance, a.Hashes.Divergence = instance, nil
	if outdated {
		a.ShownInstance = ^instance // any other one
	}
	a.NoteLeftover()
}

// Continues reports whether NetIDs of a server instance are those of the present session.
func (a *Applier) Continues(instance uint64) bool {
	return a.recv.AnyState && a.ShownInstance == instance
}

// NoteLeftover notes that the states of everything that the world shows were forgotten.
func (a *Applier) NoteLeftover() {
	for _, page := range a.View.Replicas.Pages {
		for j := range page {
			a.leftover = a.leftover || page[j].Shown || page[j].SubEntity
		}
	}
}

// outlived reports whether the world shows anything of former sessions that is known to have ended,
// and whether that is everything, since the server instance is another one.
func (a *Applier) outlived(complete bool) (some, foreign bool) {
	foreign = a.recv.AnyState && a.ShownInstance != a.instance
	return a.recv.AnyState && a.leftover && (foreign || complete), foreign
}

// takeOver removes what is left of former sessions, once it is known to have ended.
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

// NameEntities replaces entities by NetIDs in rows of a component. Entities that the world no
// longer shows become nothing, though names still has them.
func (a *Applier) NameEntities(comp *schema.Component, rows []uint32) {
	for _, i := range comp.References {
		for w := comp.Columns[i].Word; w < len(rows); w += comp.Words {
			id, generation := rows[w], rows[w+1]
			slot, counter := a.names.Of(id, generation)
			e := a.shownAs(wire.NetID{Slot: slot - 1, Generation: uint16(counter)})
			if slot == 0 || e.ID() != id || e.Generation() != generation {
				slot, counter = 0, 0
			}
			rows[w], rows[w+1] = slot, counter
		}
	}
}

// EntityOf returns the entity that the server names. There is none of which nothing has come in this session: the
// world may show it still, but it may have ended.
func (a *Applier) EntityOf(id wire.NetID) ecs.Entity {
	if m := a.View.Replicas.At(id.Slot); a.leftover && m != nil && m.Held.N == 0 {
		return ecs.Entity{}
	}
	return a.shownAs(id)
}

// HasEnded reports whether the server's entity, of which e is the replica, is known to have ended.
func (a *Applier) HasEnded(e ecs.Entity) bool {
	id, ok := a.View.NetID(e)
	if !ok || a.ShownInstance != a.instance {
		return false
	}
	m := a.View.Replicas.At(id.Slot)
	if m.Empty {
		return !m.Left
	}
	state := m.Held.At(m.Newest)
	switch {
	case !m.Any || state == nil || state.Generation == m.generation:
		return false
	case m.ended || m.Held.EndedAfter(m.Tick): // the client has received it, before another entity got the slot
		return !m.Left
	}
	return true
}

// shownAs returns the entity that the world shows with a NetID. At the beginning of a session with another server
// instance there is none, since the world still shows what the former instance named.
func (a *Applier) shownAs(id wire.NetID) ecs.Entity {
	if a.ShownInstance != a.instance {
		return ecs.Entity{}
	}
	e, _ := a.View.Entity(id)
	return e
}

// Verify compares the world with the states that it should show. It returns the first difference, or nil.
func (a *Applier) Verify() *Divergence {
	if !a.View.Intact() || a.ShownInstance != a.instance && a.recv.AnyState {
		return nil // the world does not show what is held
	}
	for i, page := range a.View.Replicas.Pages {
		for j := range page {
			m, slot := &page[j], uint32(i*receive.ReplicaPage+j)
			if of := a.View.Resources.In(int(slot)); !a.View.present(m) && !(of && m.Shown) {
				continue
			}
			state := m.Held.At(m.Tick)
			if state == nil || state.Generation != m.generation || m.partly { // partly: the next Show writes it
				continue
			}
			if d := a.View.verifyEntity(m, state); d != nil {
				d.NetID = a.View.named(slot, m.generation)
				if m.SubEntity {
					d.NetID, _ = a.Referrers.linked(a.Schema.Link, m)
				}
				return d
			}
		}
	}
	return nil
}

// checkSpawnComponents panics if one of the components can't be on all spawned entities.
func (a *Applier) checkSpawnComponents() {
	for i, id := range a.spawnWith {
		info, ok := ecs.ComponentInfo(a.View.World, id)
		if !ok {
			panic(fmt.Sprintf("replication: WithSpawnComponents: the client's world has no component %v: "+
				"use IDs of this world", id))
		}
		var why string
		switch {
		case id == a.View.Marker:
			why = "every replica has it anyway"
		case info.IsRelation:
			why = "an entity has room for one relation, which may be the server's"
		}
		for k, own := range a.View.Components {
			if id == own && !a.View.Resources.Set.Has(k) {
				why = "it is in the schema, so the server decides which entities have it"
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
