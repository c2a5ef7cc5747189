package main

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
)

// mirror is a client with its own world, its link, and the checks of what it shows.
type mirror struct {
	index int // among the mirrors
	world ecs.World
	types []reflect.Type // by component
	ids   []ecs.ID       // by component

	references []reference

	client *replication.Client
	peer   *replication.Peer
	link   *netsim.Link

	up, down, arrived queue // from the client, from the server, and for the client

	round  uint64 // number of the latest check
	codes  []uint64
	faults *mismatches
}

// mismatches counts errors and describes the first few.
type mismatches struct {
	count int
	first []string
}

const describedMismatches = 5

func (m *mismatches) add(format string, args ...any) {
	m.count++
	if len(m.first) < describedMismatches {
		m.first = append(m.first, fmt.Sprintf(format, args...))
	}
}

// moment is the time of a check, in ticks of the trace and of the server.
type moment struct {
	now        int64
	serverTick uint32
}

// timeOf converts a server tick to ticks of the trace. Server ticks wrap.
func (m moment) timeOf(tick uint32) int64 {
	return m.now - int64(int32(m.serverTick-tick))
}

// check compares the entities of the mirror with the oracle, at the tick of each that the client
// reports. Unless it is thorough it skips those whose tick has not changed since they were last
// found right. It returns the number of entities shown.
func (m *mirror) check(o *oracle, at moment, thorough bool) int {
	m.round++
	count := 0
	for id, e := range m.client.Entities() {
		tick, _ := m.client.StateTick(e)
		count++
		m.checkEntity(o, at, thorough, id, e, uint32(tick))
	}
	if thorough {
		query := m.world.Query(ecs.All())
		if n := query.Count(); n != count {
			m.faults.add("tick %d, client %d: the world has %d entities, but the client mirrors %d", at.now, m.index,
				n, count)
		}
		query.Close()
	}
	return count
}

func (m *mirror) checkEntity(o *oracle, at moment, thorough bool, id replication.NetID, e ecs.Entity, tick uint32) {
	fail := func(format string, args ...any) {
		m.faults.add("tick %d, client %d, network ID %v: %s", at.now, m.index, id, fmt.Sprintf(format, args...))
	}
	l := o.byNetID[id]
	if l == nil {
		fail("the server never had it, or ended it more than %d ticks ago", afterlife)
		return
	}
	shown, time := &l.shown[m.index], at.timeOf(tick)
	switch {
	case shown.round == m.round:
		fail("entity %d is there twice", l.number)
		return
	case time > at.now || time >= l.died || time < l.born:
		fail("shows entity %d at tick %d, when it did not live", l.number, time)
		return
	case time < shown.at:
		fail("shows entity %d at tick %d, but it showed tick %d before", l.number, time, shown.at)
		return
	}
	moved := time != shown.at
	shown.round = m.round
	if !moved && !thorough {
		return
	}
	shown.at = time
	if e2, ok := m.client.Entity(id); !ok || e2 != e {
		fail("the client finds another entity by it")
	}
	if id2, ok := m.client.NetID(e); !ok || id2 != id {
		fail("the client finds another ID by its entity")
	}
	if what := m.differs(o.schema, l.at(time), e); what != "" {
		fail("entity %d at tick %d: %s", l.number, time, what)
	}
	if wrong := m.refersTo(o, l.at(time).targets, e, false); wrong != "" {
		fail("entity %d at tick %d: %s refers to another entity", l.number, time, wrong)
	}
	l.prune()
}

// differs compares an entity of the mirror's world with a version, component for component and code
// for code. It returns a description, or "".
func (m *mirror) differs(schema *replication.Schema, want *version, e ecs.Entity) string {
	if !m.world.Alive(e) {
		return "is not alive"
	}
	for i, codes := range want.codes {
		name := m.types[i]
		has := m.world.Has(e, m.ids[i])
		if has != (codes != nil) {
			return fmt.Sprintf("has %v: %v, but should be %v", name, has, codes != nil)
		}
		if !has {
			continue
		}
		value := m.withoutReferences(i, reflect.NewAt(m.types[i], m.world.Get(e, m.ids[i])))
		m.codes = schema.Codes(value.Interface(), m.codes[:0])
		if !slices.Equal(m.codes, codes) {
			return fmt.Sprintf("%v has codes %v, but should have %v", name, m.codes, codes)
		}
	}
	return ""
}

// equals reports whether the mirror showed, in the latest check, exactly the live entities in their
// newest states. A state may have an old tick: a row that changes no code is no change to the
// server.
func (m *mirror) equals(o *oracle, count int) bool {
	if count != len(o.lives) {
		return false
	}
	for _, l := range o.lives {
		if s := l.shown[m.index]; s.round != m.round || !l.at(s.at).equals(l.newest()) {
			return false
		}
	}
	return true
}

// refersRight reports whether all references are those of the newest states.
func (m *mirror) refersRight(o *oracle) bool {
	for id, e := range m.client.Entities() {
		if l := o.byNetID[id]; len(m.references) > 0 && m.refersTo(o, l.newest().targets, e, true) != "" {
			return false
		}
	}
	return true
}
