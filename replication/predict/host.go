package predict

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/archeutil"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/seam"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// A Host simulates a server's world. [Serve] makes one. It belongs to the goroutine of its server.
type Host struct {
	server *replication.Server
	world  *ecs.World
	model  *model
	tick   Tick
	born   ecs.ID
	mine   ecs.ID
	marker ecs.ID
	input  ecs.ID
	ids    []ecs.ID // scratch memory
	owned  []ownedEntity
	exact  []rounding
	feed   func(p *replication.Peer, tick replication.Tick) unsafe.Pointer // the input that is simulated
	forget func(p *replication.Peer)
	write  func(dst, input unsafe.Pointer) // one input over another; nil means the zero value
	missed uint64
	ended  bool // a tick was simulated, of the given number
	last   replication.Tick
}

type ownedEntity struct {
	entity ecs.Entity
	peer   *replication.Peer
}

// Serve returns the host of a server, which simulates its world with the model. Call [Host.Step] once before each
// [replication.Server.Replicate].
//
// Panics if the model is of another schema than the server's, if the server has a Host already, and if the world is
// locked.
func Serve[I any](server *replication.Server, m *Model[I]) *Host {
	if m == nil {
		panic("predict: Serve without a model: make one with NewModel")
	}
	m.mustExist("Serve")
	inside := seam.OfServer(server)
	m.suits("Serve", inside.Schema)
	if inside.Opts.Verdicts {
		panic("predict: Serve: this server has a Host already: call Serve once and keep what it returns")
	}
	w := inside.Snap.World
	if w.IsLocked() {
		panic("predict: Serve on a locked world: call it outside of queries, since it registers components")
	}
	h := &Host{
		server: server, world: w, model: &m.model, marker: inside.Snap.Capture.Marker,
		born: ecs.ComponentID[Born](w), mine: ecs.ComponentID[Mine](w), input: ecs.ComponentID[I](w),
	}
	for _, s := range m.states {
		if s.exact {
			comp := &inside.Schema.Components[numberOf(inside.Schema, s.typ)]
			h.exact = append(h.exact, newRounding(w, h.marker, comp))
		}
	}
	controls := map[*replication.Peer]*control[I]{}
	h.feed = func(p *replication.Peer, tick replication.Tick) unsafe.Pointer {
		c := controls[p]
		if c == nil {
			c = &control[I]{age: longestRepeat + 1}
			controls[p] = c
		}
		if c.tick == tick {
			return unsafe.Pointer(&c.in)
		}
		c.tick = tick
		if in, exact := replication.Input[I](p, tick); exact {
			c.in, c.age = in, 0
		} else {
			c.age = min(c.age+1, longestRepeat+1)
			c.in = m.replaced(c.in, c.age)
			h.missed++
		}
		return unsafe.Pointer(&c.in)
	}
	h.forget = func(p *replication.Peer) { delete(controls, p) }
	h.write = func(dst, input unsafe.Pointer) {
		var zero I
		if input == nil {
			input = unsafe.Pointer(&zero)
		}
		*(*I)(dst) = *(*I)(input)
	}
	server.OnDisconnect(h.forget)
	inside.Opts.Verdicts = true
	h.tick = Tick{World: w, end: h, Seconds: 1 / float64(inside.Opts.TickRate)}
	return h
}

// control is what a peer's entities are controlled with.
type control[I any] struct {
	tick replication.Tick
	in   I   // simulated in that tick
	age  int // for how many ticks it has been repeated
}

// Own gives an entity to a player: the peer becomes its owner (see [replication.Server.SetOwner]), its inputs are
// written into the entity before each step, and its client predicts it. nil takes it from its player; so does the end
// of the connection. The input component stays, with the zero value.
//
// Panics if the entity is dead, if the peer is of another server, or if the world is locked.
func (h *Host) Own(e ecs.Entity, p *replication.Peer) {
	h.mustExist()
	if h.world.IsLocked() {
		panic("predict: Host.Own on a locked world: call it outside of queries, since it adds components")
	}
	h.server.SetOwner(e, p)
	h.owned = slices.DeleteFunc(h.owned, func(o ownedEntity) bool { return o.entity == e })
	if p == nil {
		h.disown(e)
		return
	}
	h.add(e, h.mine)
	h.add(e, h.input)
	h.add(e, h.marker)
	h.owned = append(h.owned, ownedEntity{e, p})
}

// add adds a component to an entity that lacks it.
func (h *Host) add(e ecs.Entity, id ecs.ID) {
	if !h.world.Has(e, id) {
		h.world.Add(e, id)
	}
}

// disown makes an entity nobody's.
func (h *Host) disown(e ecs.Entity) {
	if !archeutil.Alive(h.world, e) {
		return
	}
	if h.world.Has(e, h.mine) {
		h.world.Remove(e, h.mine)
	}
	if in := h.world.GetUnchecked(e, h.input); in != nil {
		h.write(in, nil)
	}
}

// Step simulates the tick that the next [replication.Server.Replicate] sends: it writes the inputs of all players into
// their entities and calls the model's step.
//
// Panics if that tick was simulated already, and if the world is locked.
func (h *Host) Step() {
	h.mustExist()
	tick := h.server.Tick() + 1
	switch {
	case h.ended && tick == h.last:
		panic(fmt.Sprintf("predict: Host.Step twice for tick %d: call it once before each Replicate", tick))
	case h.world.IsLocked():
		panic("predict: Host.Step on a locked world: call it outside of queries, since the step changes the world")
	}
	h.ended, h.last = true, tick
	h.owned = slices.DeleteFunc(h.owned, func(o ownedEntity) bool {
		gone := !archeutil.Alive(h.world, o.entity) || h.server.Owner(o.entity) != o.peer
		if gone {
			h.disown(o.entity)
		}
		return gone
	})
	for _, o := range h.owned {
		if dst := h.world.GetUnchecked(o.entity, h.input); dst != nil {
			h.write(dst, h.feed(o.peer, tick))
		}
	}
	h.tick.simulate(h.model, tick)
	for i := range h.exact {
		h.exact[i].round(h.world)
	}
	if h.model.save != nil {
		h.model.save(tick)
	}
}

// Missed returns how many inputs were replaced, because they came too late or not at all: once per player and tick.
func (h *Host) Missed() uint64 {
	h.mustExist()
	return h.missed
}

func (h *Host) mustExist() {
	if h == nil || h.server == nil {
		panic("predict: there is no Host: Serve makes one")
	}
}

func (h *Host) simulated() ecs.ID     { return h.marker }
func (h *Host) predictor() *Predictor { return nil }

func (h *Host) spawn(n name, ids []ecs.ID) ecs.Entity {
	h.ids = append(append(h.ids[:0], ids...), h.born, h.marker)
	e := h.world.NewEntity(h.ids...)
	*(*Born)(h.world.Get(e, h.born)) = Born{By: n.by, Tick: uint16(n.tick), Key: n.key}
	if owner := h.server.Owner(n.by); owner != nil {
		h.server.SetOwner(e, owner)
	}
	return e
}

func (h *Host) despawn(e ecs.Entity) { h.world.RemoveEntity(e) }

func (h *Host) identity(e ecs.Entity) uint64 { return identityOf(h.world, h.born, e, h.server.NetID) }

// identityOf is a number for an entity that is the same at both ends, also before the server's is known of what a step
// has spawned.
func identityOf(w *ecs.World, born ecs.ID, e ecs.Entity, netID func(ecs.Entity) (replication.NetID, bool)) (x uint64) {
	for range 8 { // ancestors at most
		b := (*Born)(archeutil.LookUp(w, e, born))
		if b == nil {
			break
		}
		x, e = wire.Mix64(x+wire.Golden64+(uint64(b.Tick)<<8|uint64(b.Key))), b.By
	}
	id, _ := netID(e)
	return x + (uint64(id.Slot)<<16 | uint64(id.Generation))
}

// A rounding rounds a component to its precision.
type rounding struct {
	comp   *schema.Component
	id     ecs.ID
	filter ecs.CachedFilter
	codes  []uint32
}

func newRounding(w *ecs.World, marker ecs.ID, comp *schema.Component) rounding {
	id := ecs.TypeID(w, comp.Typ)
	filter := ecs.All(marker, id)
	return rounding{comp: comp, id: id, filter: w.Cache().Register(&filter), codes: make([]uint32, comp.Words)}
}

func (r *rounding) round(w *ecs.World) {
	for q := w.Query(&r.filter); q.Next(); {
		p := q.Get(r.id)
		r.comp.ReadColumn(r.codes, p, 1)
		r.comp.Write(p, r.codes)
	}
}
