package main

import (
	"slices"

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/replication"
)

// truthTicks is how many records are kept: half a minute at the usual rate. An entity that a client
// shows as of an earlier tick is counted, but not checked.
const truthTicks = 600

// truth records the server's world at each replicated tick, independently of the library.
type truth struct {
	tick    uint32 // of the latest record
	records int
	log     map[replication.NetID][]version
	scratch []uint64
	seen    map[replication.NetID]bool
}

// version is the state of an entity from a tick on.
type version struct {
	Tick  uint32
	Codes []uint64 // as of reader.codes; nil if the entity is gone
}

// change is a new version of one entity.
type change struct {
	ID    replication.NetID
	Tick  uint32
	Codes []uint64
}

func newTruth() *truth {
	return &truth{log: map[replication.NetID][]version{}, seen: map[replication.NetID]bool{}}
}

// newer compares ticks, which wrap.
func newer(a, b uint32) bool { return int32(a-b) > 0 }

// record records the world at a tick, and returns the changes.
func (t *truth) record(tick uint32, w *ecs.World, r *reader, id func(ecs.Entity) (replication.NetID, bool)) []change {
	var changes []change
	clear(t.seen)
	filter := ecs.All(ecs.ComponentID[replication.Replicated](w))
	query := w.Query(&filter)
	for query.Next() {
		e := query.Entity()
		netID, ok := id(e)
		if !ok {
			continue // then no client may show it
		}
		t.seen[netID] = true
		latest, ok := t.latest(netID)
		t.scratch = r.codesAfter(e, latest.Codes, t.scratch[:0])
		if !ok || !slices.Equal(latest.Codes, t.scratch) {
			changes = append(changes, change{netID, tick, slices.Clone(t.scratch)})
		}
	}
	for netID, versions := range t.log {
		if !t.seen[netID] && versions[len(versions)-1].Codes != nil {
			changes = append(changes, change{ID: netID, Tick: tick})
		}
	}
	t.add(tick, changes)
	return changes
}

// add appends the changes of a tick, and drops old versions.
func (t *truth) add(tick uint32, changes []change) {
	t.tick = tick
	for _, c := range changes {
		t.log[c.ID] = append(t.log[c.ID], version{c.Tick, c.Codes})
	}
	if t.records++; t.records%(truthTicks/4) == 0 {
		t.forget(tick - truthTicks)
	}
}

// forget drops the versions that ended before a tick.
func (t *truth) forget(tick uint32) {
	for id, versions := range t.log {
		for len(versions) > 1 && !newer(versions[1].Tick, tick) {
			versions = versions[1:]
		}
		if last := versions[len(versions)-1]; last.Codes == nil && newer(tick, last.Tick) {
			delete(t.log, id)
			continue
		}
		t.log[id] = slices.Clone(versions)
	}
}

// latest returns the entity's version in the latest record.
func (t *truth) latest(id replication.NetID) (version, bool) {
	versions := t.log[id]
	if len(versions) == 0 {
		return version{}, false
	}
	last := versions[len(versions)-1]
	return last, last.Codes != nil
}

// snapshot returns all live entities, for late clients.
func (t *truth) snapshot() []change {
	var changes []change
	for id := range t.log {
		if latest, ok := t.latest(id); ok {
			changes = append(changes, change{id, latest.Tick, latest.Codes})
		}
	}
	return changes
}

// A verdict is the result of a check.
type verdict int

const (
	right verdict = iota
	wrong
	tooNew // newer than the record: check again later
	tooOld // older than the record: unknown
)

// check reports whether an entity had these codes at a tick.
func (t *truth) check(id replication.NetID, tick uint32, codes []uint64) verdict {
	if newer(tick, t.tick) {
		return tooNew
	}
	versions := t.log[id]
	for i := len(versions) - 1; i >= 0; i-- {
		if newer(versions[i].Tick, tick) {
			continue
		}
		if slices.Equal(versions[i].Codes, codes) {
			return right
		}
		return wrong
	}
	if newer(t.tick-truthTicks, tick) {
		return tooOld
	}
	return wrong // it did not exist yet, or never did
}

// equal reports whether the entities of a client are exactly those of the latest record.
func (t *truth) equal(c *replication.Client, r *reader) bool {
	shown, same := 0, true
	for id, e := range c.Entities() {
		shown++
		latest, ok := t.latest(id)
		t.scratch = r.codes(e, t.scratch[:0])
		same = same && ok && slices.Equal(latest.Codes, t.scratch)
	}
	return same && shown == t.alive()
}

// alive returns the number of entities in the latest record.
func (t *truth) alive() int {
	n := 0
	for id := range t.log {
		if _, ok := t.latest(id); ok {
			n++
		}
	}
	return n
}
