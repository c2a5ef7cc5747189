package replication

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"unsafe"

	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// The game of the tests: components of several kinds in a server world, with a naive record of full
// states as oracle.

type tPosition struct {
	X, Y, Z float32 `repl:"range=-100:100,step=0.01"`
}

type tRotation struct {
	Q [4]float32 `repl:"quat,bits=9"`
}

type tHealth struct {
	HP    int16 `repl:"range=0:100"`
	Armed bool
}

type tBulk struct {
	Cells [40]uint64
}

type tExact struct {
	A float64
	B int32
	C struct{ D, E uint8 }
	F float32 `repl:"angle,bits=12"`
}

type tFrozen struct{}

func testSchema() *Schema {
	s := NewSchema()
	Register[tPosition](s)
	Register[tRotation](s)
	Register[tHealth](s)
	Register[tExact](s)
	Register[tFrozen](s)
	Register[tBulk](s)
	return s
}

func seedOf(t testing.TB) uint64 { return replicationtest.Seed(t) }

const raceDetector = replicationtest.RaceDetector

// ticksOf is [replicationtest.TicksOf].
func ticksOf(long, short int) int { return replicationtest.TicksOf(long, short) }

// longOf is ticksOf for the slowest tests. The environment variable REPLICATION_LONG selects the
// longest run.
func longOf(longest, long, short int) int {
	if os.Getenv("REPLICATION_LONG") != "" {
		long = longest
	}
	return ticksOf(long, short)
}

// roundsOf is ticksOf for tests that are slow under the race detector and gain little from it: each
// round does the same in the same goroutines, so a few of them are enough.
func roundsOf(long, short, race int) int {
	if raceDetector {
		return race
	}
	return ticksOf(long, short)
}

// recordedOf is stateOf for an entity of a server's world: a number may have the code that the server recorded, instead
// of its own, if it is within the margin of that.
func recordedOf(s *Server, e ecs.Entity) string { return codesOf(faceOf(s.schema), s.snap.World, e, s) }

// stateOf returns the codes of an entity as text, component by component.
func stateOf(s *Schema, w *ecs.World, e ecs.Entity) string { return codesOf(s, w, e, nil) }

// holdRecorded puts the codes that a server recorded for component i of an entity into the row of its value at p, if
// these are to be kept.
func holdRecorded(server *Server, e ecs.Entity, i int, row []uint32, p unsafe.Pointer) {
	id, ok := server.NetID(e)
	if !ok {
		return
	}
	slot := int(id.Slot)
	c := &server.schema.Components[i]
	if c.Class > 0 {
		if slot, ok = server.snap.Slots.SubEntity(c.Class-1, slot); !ok {
			return
		}
	}
	if h := server.snap.Histories[i]; h.Has(slot) && c.Keeps(row, h.Row(slot), p) {
		copy(row, h.Row(slot))
	}
}

func codesOf(s *Schema, w *ecs.World, e ecs.Entity, server *Server) string {
	var codes []uint64
	for i := range s.raw.Components {
		c := &s.raw.Components[i]
		if c.Resource {
			continue
		}
		id := ecs.TypeID(w, c.Typ)
		if !w.Has(e, id) {
			continue
		}
		row := make([]uint32, c.Words)
		c.ReadColumn(row, w.Get(e, id), 1)
		if server != nil {
			holdRecorded(server, e, i, row, w.Get(e, id))
		}
		for _, k := range c.References {
			clear(row[c.Columns[k].Word:][:2]) // entity IDs of this world
		}
		codes = append(codes, uint64(1000+i))
		for _, x := range row {
			codes = append(codes, uint64(x))
		}
	}
	return fmt.Sprint(codes)
}

// truth records the server's world at every tick: full states, sharing nothing with the library's
// histories.
type truth struct {
	versions map[NetID][]truthVersion
	live     map[NetID]ecs.Entity
}

type truthVersion struct {
	tick  uint32
	state string // "": despawned
}

func newTruth() *truth {
	return &truth{versions: map[NetID][]truthVersion{}}
}

// record notes the state of all replicated entities after a Replicate.
func (o *truth) record(s *Server) {
	now := replicatedBy(s)
	for id, e := range now {
		o.note(id, uint32(s.Tick()), recordedOf(s, e))
	}
	for id := range o.live {
		if _, ok := now[id]; !ok {
			o.note(id, uint32(s.Tick()), "")
		}
	}
	o.live = now
}

// replicatedBy returns all replicated entities after a Replicate.
func replicatedBy(s *Server) map[NetID]ecs.Entity {
	now := map[NetID]ecs.Entity{}
	filter := ecs.All(s.snap.Capture.Marker)
	q := s.snap.World.Query(&filter)
	for q.Next() {
		id, ok := s.NetID(q.Entity())
		if !ok {
			panic("a replicated entity without NetID")
		}
		now[id] = q.Entity()
	}
	return now
}

func (o *truth) note(id NetID, tick uint32, state string) {
	v := o.versions[id]
	if n := len(v); n == 0 || v[n-1].state != state {
		v = append(v, truthVersion{tick, state})
		if len(v) > 2000 {
			v = append([]truthVersion(nil), v[1000:]...)
		}
		o.versions[id] = v
	}
}

// at returns the state of an entity at a tick.
func (o *truth) at(id NetID, tick uint32) string {
	v := o.versions[id]
	for i := len(v) - 1; i >= 0; i-- {
		if int32(v[i].tick-tick) <= 0 {
			return v[i].state
		}
	}
	return ""
}

// end is a client with its world, link and peer.
type end struct {
	world  *ecs.World
	client *Client
	peer   *Peer
	link   *netsim.Link
	last   map[NetID]uint32 // tick shown before: never goes back
}

// codingOf returns the coding of the next peer: the first one has that of the server's options, the
// others alternate, in an order that depends on the seed.
func codingOf(s *Server) Coding {
	if len(s.peers) == 0 {
		if s.opts.Compact {
			return Compact
		}
		return Packed
	}
	return Coding((s.opts.Seed + uint64(len(s.peers))) % 2)
}

func connect(s *Server, seed uint64, cfg netsim.Config, opts ...ClientOption) *end {
	w := ecs.NewWorld()
	e := &end{world: &w, link: netsim.NewLink(seed, cfg), last: map[NetID]uint32{}}
	e.peer = s.Connect(e.link.Down.Send, WithCoding(codingOf(s)))
	e.client = NewClientWith(&w, faceOf(s.schema), e.link.Up.Send, opts...)
	return e
}

// step moves the link by one tick and gives both ends the packets that arrived.
func (e *end) step(t testing.TB) {
	e.link.Step()
	e.link.Down.Receive(func(p []byte) { _ = e.client.Receive(p) })
	require.NoError(t, e.client.Apply())
	e.link.Up.Receive(func(p []byte) { _ = e.peer.Receive(p) })
}

// check compares every replica with the truth at the tick that it shows.
func (e *end) check(t testing.TB, s *Server, o *truth) {
	for id, entity := range e.client.Entities() {
		tick, _ := e.client.StateTick(entity)
		if last, ok := e.last[id]; ok && Tick(last) == tick {
			continue
		} else if ok && int32(tick-Tick(last)) < 0 {
			require.FailNow(t, "went back in time", "%v from tick %d to %d", id, last, tick)
		}
		e.last[id] = uint32(tick)
		if got, want := stateOf(faceOf(s.schema), e.world, entity), o.at(id, uint32(tick)); got != want {
			require.FailNow(t, "wrong state", "%v at tick %d (server at %d):\ngot  %s\nwant %s", id, tick, s.Tick(), got, want)
		}
	}
}

// tickAll plays a tick: the server replicates, all ends get their packets, and everything that they
// show is checked.
func tickAll(t testing.TB, s *Server, o *truth, ends []*end) {
	s.Replicate()
	o.record(s)
	for _, e := range ends {
		e.step(t)
		e.check(t, s, o)
	}
}

// equalTo describes how the client's world differs from the server's, "" if it does not.
func (e *end) equalTo(s *Server, o *truth) string {
	n := 0
	diff := ""
	for id, entity := range e.client.Entities() {
		n++
		if got, want := stateOf(faceOf(s.schema), e.world, entity), o.at(id, uint32(s.Tick())); got != want {
			diff = fmt.Sprintf("%v: client %s, server %s", id, got, want)
		}
	}
	if diff == "" && n != len(o.live) {
		diff = fmt.Sprintf("client has %d entities, server %d", n, len(o.live))
	}
	return diff
}

// game changes the server's world at random.
type game struct {
	rng      *rand.Rand
	world    *ecs.World
	entities []ecs.Entity
	ids      []ecs.ID
	marker   ecs.ID
	limit    int
}

func newGame(seed uint64, w *ecs.World, s *Schema, limit int) *game {
	g := &game{rng: rand.New(rand.NewPCG(seed, 1)), world: w, marker: ReplicatedID(w), limit: limit}
	for i := range s.raw.Components {
		g.ids = append(g.ids, ecs.TypeID(w, s.raw.Components[i].Typ))
	}
	return g
}

func (g *game) spawn(ids ...ecs.ID) ecs.Entity {
	e := g.world.NewEntity(append(ids, g.marker)...)
	g.entities = append(g.entities, e)
	for range 3 {
		g.mutate(e)
	}
	return e
}

func (g *game) despawn(i int) {
	g.world.RemoveEntity(g.entities[i])
	g.entities[i] = g.entities[len(g.entities)-1]
	g.entities = g.entities[:len(g.entities)-1]
}

// mutate changes something in the entity, usually a little.
func (g *game) mutate(e ecs.Entity) {
	r := g.rng
	id := g.ids[r.IntN(len(g.ids))]
	if !g.world.Has(e, id) {
		return
	}
	p := g.world.Get(e, id)
	switch id {
	case g.ids[0]:
		v := (*tPosition)(p)
		if r.IntN(50) == 0 {
			v.X, v.Y = r.Float32()*200-100, r.Float32()*200-100
		}
		v.X += r.Float32() - 0.5
		v.Z += 0.05
		if v.Z > 100 {
			v.Z = -100
		}
	case g.ids[1]:
		v := (*tRotation)(p)
		for i := range v.Q {
			v.Q[i] += r.Float32()*0.1 - 0.05
		}
	case g.ids[2]:
		v := (*tHealth)(p)
		v.HP = int16(r.IntN(101))
		v.Armed = r.IntN(2) == 0
	case g.ids[3]:
		v := (*tExact)(p)
		v.A += r.NormFloat64()
		v.B += int32(r.IntN(5))
		v.C.E++
		v.F += 0.3
	case g.ids[5]:
		(*tBulk)(p).Cells[r.IntN(40)] = r.Uint64()
	}
}

// step plays one tick.
func (g *game) step() {
	r := g.rng
	if len(g.entities) < g.limit && r.IntN(3) == 0 {
		var ids []ecs.ID
		for i, id := range g.ids {
			if r.IntN(2) == 0 && i != 5 || r.IntN(20) == 0 {
				ids = append(ids, id)
			}
		}
		g.spawn(ids...)
	}
	if len(g.entities) > 0 && r.IntN(4) == 0 {
		g.despawn(r.IntN(len(g.entities)))
	}
	if len(g.entities) > 0 && r.IntN(4) == 0 {
		e, id := g.entities[r.IntN(len(g.entities))], g.ids[r.IntN(len(g.ids)-1)]
		if g.world.Has(e, id) {
			g.world.Remove(e, id)
		} else {
			g.world.Add(e, id)
		}
	}
	for _, e := range g.entities {
		if r.IntN(3) == 0 {
			g.mutate(e)
		}
	}
}

// faceOf returns the Schema that wraps the given one.
func faceOf(types *schema.Schema) *Schema {
	return (*Schema)(unsafe.Pointer(types)) // its only field
}
