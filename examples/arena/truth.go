package main

import (
	"fmt"
	"iter"
	"slices"

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/examples/arena/game"
	"github.com/arche-replicate/arche-replicate/replication"
)

// truthTicks is how many records are kept: half a minute at the usual rate. An entity that a client
// shows as of an earlier tick is counted, but not checked.
const truthTicks = 600

// truth records the server's world at each replicated tick, independently of the library.
type truth struct {
	tick    replication.Tick // of the latest record
	records int
	log     map[replication.NetID][]version
	scratch []uint64
	seen    map[replication.NetID]bool
}

// version is the state of an entity from a tick on.
type version struct {
	tick  replication.Tick
	codes []uint64 // as of game.Reader.Codes; nil if the entity is gone
}

func newTruth() *truth {
	return &truth{log: map[replication.NetID][]version{}, seen: map[replication.NetID]bool{}}
}

// newer compares ticks, which wrap.
func newer(a, b replication.Tick) bool { return int32(a-b) > 0 }

// record records a world at a tick.
func (t *truth) record(tick replication.Tick, entities iter.Seq2[replication.NetID, ecs.Entity], r *game.Reader) {
	clear(t.seen)
	for id, e := range entities {
		t.seen[id] = true
		latest, ok := t.latest(id)
		t.scratch = r.CodesAfter(e, latest.codes, t.scratch[:0])
		if !ok || !slices.Equal(latest.codes, t.scratch) {
			t.add(id, version{tick, slices.Clone(t.scratch)})
		}
	}
	for id, versions := range t.log {
		if !t.seen[id] && versions[len(versions)-1].codes != nil {
			t.add(id, version{tick: tick})
		}
	}
	t.advance(tick)
}

func (t *truth) add(id replication.NetID, v version) { t.log[id] = append(t.log[id], v) }

// advance completes the record of a tick, and drops old versions from time to time.
func (t *truth) advance(tick replication.Tick) {
	t.tick = tick
	if t.records++; t.records%(truthTicks/4) == 0 {
		t.forget(tick - truthTicks)
	}
}

// forget drops the versions that ended before a tick.
func (t *truth) forget(tick replication.Tick) {
	for id, versions := range t.log {
		for len(versions) > 1 && !newer(versions[1].tick, tick) {
			versions = versions[1:]
		}
		if last := versions[len(versions)-1]; last.codes == nil && newer(tick, last.tick) {
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
	return last, last.codes != nil
}

// at returns the codes of an entity at a tick: nil if it was not there. What is older than the record is not known.
func (t *truth) at(id replication.NetID, tick replication.Tick) (codes []uint64, known bool) {
	versions := t.log[id]
	for i := len(versions) - 1; i >= 0; i-- {
		if !newer(versions[i].tick, tick) {
			return versions[i].codes, true
		}
	}
	return nil, !newer(t.tick-truthTicks, tick)
}

// census counts the entities of the latest record.
func (t *truth) census() (c game.Census) {
	for id := range t.log {
		if latest, ok := t.latest(id); ok {
			c.Add(id, latest.codes)
		}
	}
	return c
}

// hex writes a sum as the page does.
func hex(sum uint64) string { return fmt.Sprintf("%016x", sum) }
