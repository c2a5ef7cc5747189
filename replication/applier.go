package replication

import (
	"fmt"

	"github.com/arche-replicate/arche-replicate/replication/internal/archeutil"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// applier makes a world show what was received. It knows the receiver, which does not know it, and is told
// what it needs of the session.
type applier struct {
	schema *schema.Schema
	stats  *clientCounters
	recv   *receiver

	view      worldView
	referrers referrers
	relations archeutil.Relations
	names     archeutil.EntityNames // of what was ever mirrored, if there are entities in messages or inputs
	hooks     hooks
	expected  expectations
	hashes    hashCheck
	spawnWith []ecs.ID // components of the user's for all that is spawned

	origin      uint64 // of the present session's NetIDs
	shownOrigin uint64 // of those that the world shows
	leftover    bool   // the world may show what the present session does not know

	scratch struct{ add, remove []ecs.ID }
}

// init prepares an applier, whose parts know each other by where it is.
func (a *applier) init(w *ecs.World, s *schema.Schema, marker ecs.ID, recv *receiver, stats *clientCounters, slots uint32, spawnWith []ecs.ID) {
	a.schema, a.stats, a.recv, a.spawnWith = s, stats, recv, spawnWith
	a.view = newWorldView(w, s, marker, recv)
	a.referrers.limit = slots
	a.hooks.schema, a.hooks.recv, a.hooks.view, a.hooks.referrers = s, recv, &a.view, &a.referrers
	a.expected.schema, a.expected.stats, a.expected.view = s, stats, &a.view
	a.hashes = hashCheck{schema: s, stats: stats, recv: recv, view: &a.view}
	a.checkSpawnComponents()
}

// show brings the world up to date with what was received. complete reports whether all has come that was there when the session
// began.
func (a *applier) show(complete bool) {
	a.noticeReset()
	a.expected.expire()
	some, foreign := a.outlived(complete)
	a.announce(some, foreign)
	a.takeOver(some, foreign)
	for _, slot := range a.recv.dirty {
		m := a.view.replicas.add(slot, &a.recv.mirrors)
		m.dirty = false
		a.applyMirror(slot, m)
	}
	a.recv.dirty = a.recv.dirty[:0]
	a.mendReferences()
	a.tell()
	a.view.tidyShapes()
}

// removeAll removes all that is mirrored.
func (a *applier) removeAll() {
	a.noticeReset()
	if a.hooks.parting {
		a.runHooks(func() { a.hooks.announceEnd() })
	}
	for i, page := range a.view.replicas.pages {
		for j := range page {
			if page[j].shown || page[j].facet {
				page[j].any = false // of resources, all go
				a.removeEntity(uint32(i*mirrorPage+j), &page[j])
			}
		}
	}
	a.recv.forgetMirrors()
	a.view.replicas.pages = nil
}

// runHooks calls what calls hooks, and sees that these leave the world in order.
func (a *applier) runHooks(call func()) {
	a.hooks.running = true
	defer func() { a.hooks.running = false }()
	call()
	if a.view.world.IsLocked() {
		panic("replication: a hook has left the world locked: close the queries that it makes")
	}
	a.noticeReset()
}

// announce calls the hooks for what this Apply is about to remove.
func (a *applier) announce(some, foreign bool) {
	if a.hooks.parting {
		a.runHooks(func() { a.hooks.announceAll(some, foreign) })
	}
}

// tell calls the hooks for what came and changed in this Apply.
func (a *applier) tell() {
	if len(a.hooks.events) > 0 {
		a.runHooks(func() { a.hooks.tellAll() })
	}
}

// noticeReset makes all mirrors be spawned anew if the world was reset. The client holds
// the newest state of each, so that takes no traffic.
func (a *applier) noticeReset() {
	if a.view.intact() {
		return
	}
	a.view.mark.Set()
	a.expected.reset()
	for i, page := range a.view.replicas.pages {
		for j := range page {
			m := &page[j]
			switch {
			case m.facet:
				a.forgetFacet(m)
			case m.shown:
				a.forgetEntity(uint32(i*mirrorPage+j), m)
			default:
				continue
			}
			if !m.dirty && !m.empty && m.held.at(m.newest) != nil {
				a.recv.markDirty(uint32(i*mirrorPage+j), m.mirror)
			}
		}
	}
}

// What becomes of mirrored entities when a new session begins. NetIDs are those of a
// server: if it is the same one, an entity that comes again is the entity that was. What
// does not come again has ended meanwhile, or is not to be seen any more; that is known
// once the session is complete. The NetIDs of another server mean other entities.

// beginShowing notes that a session begins with a server of the given origin. outdated reports whether what the world shows may
// mean other entities to it, whoever it is.
func (a *applier) beginShowing(origin uint64, outdated bool) {
	a.origin, a.hashes.divergence = origin, nil
	if outdated {
		a.shownOrigin = ^origin // whoever it was
	}
	a.noteLeftover()
}

// noteLeftover notes that of what the world shows no states are known any more.
func (a *applier) noteLeftover() {
	for _, page := range a.view.replicas.pages {
		for j := range page {
			a.leftover = a.leftover || page[j].shown || page[j].facet
		}
	}
}

// outlived reports whether the world shows something of sessions before that is known to
// be no more, and whether that is all of it, since the server is another one.
func (a *applier) outlived(complete bool) (some, foreign bool) {
	foreign = a.recv.anyState && a.shownOrigin != a.origin
	return a.recv.anyState && a.leftover && (foreign || complete), foreign
}

// takeOver removes what is left of sessions before, as soon as it is known to be no more.
func (a *applier) takeOver(some, foreign bool) {
	if a.recv.anyState {
		a.shownOrigin = a.origin
	}
	if !some {
		return
	}
	a.leftover = false
	for i, page := range a.view.replicas.pages {
		for j := range page {
			if m := &page[j]; (m.shown || m.facet) && (foreign || !m.any) {
				a.removeEntity(uint32(i*mirrorPage+j), m)
			}
		}
	}
}

// nameEntities names what is mirrored now. The names of the client tell what was mirrored ever.
func (a *applier) NameEntities(comp *schema.Component, rows []uint32) {
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

// entityOf returns what the server may have meant. In a session with another server the world shows for a while what the
// former one named.
func (a *applier) EntityOf(id wire.NetID) ecs.Entity {
	if a.shownOrigin != a.origin {
		return ecs.Entity{}
	}
	e, _ := a.view.entity(id)
	return e
}

func (a *applier) verify() *divergence {
	if !a.view.intact() {
		return nil
	}
	for i, page := range a.view.replicas.pages {
		for j := range page {
			m := &page[j]
			if !a.view.present(m) {
				continue
			}
			state := m.held.at(m.tick)
			if state == nil || state.generation != m.generation {
				continue
			}
			if d := a.view.verifyEntity(m, state); d != nil {
				d.NetID = wire.NetID{Slot: uint32(i*mirrorPage + j), Generation: m.generation}
				if m.facet {
					d.NetID, _ = a.referrers.linked(a.schema.Link, m)
				}
				return d
			}
		}
	}
	return nil
}

// checkSpawnComponents panics if the components can't be on all mirrored entities.
func (a *applier) checkSpawnComponents() {
	for i, id := range a.spawnWith {
		info, ok := ecs.ComponentInfo(a.view.world, id)
		if !ok {
			panic(fmt.Sprintf("replication: WithSpawnComponents: the client's world has no component %v: use IDs of this world", id))
		}
		var why string
		switch {
		case id == a.view.marker:
			why = "every mirrored entity has it anyway"
		case info.IsRelation:
			why = "an entity has room for one relation, which may be the server's"
		}
		for k, own := range a.view.components {
			if id == own && !a.view.resources.Set.Has(k) {
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
