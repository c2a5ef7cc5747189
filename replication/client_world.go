package replication

import (
	"iter"

	"github.com/arche-replicate/arche-replicate/replication/internal/exclusive"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// Entity returns the entity of the client's world that mirrors the given one.
func (c *Client) Entity(id NetID) (ecs.Entity, bool) {
	c.mustExist()
	return c.apply.View.Entity(wire.NetID(id))
}

// NetID returns what an entity of the client's world mirrors.
func (c *Client) NetID(e ecs.Entity) (NetID, bool) {
	c.mustExist()
	id, ok := c.apply.View.NetID(e)
	return NetID(id), ok
}

// Entities returns an iterator over the mirrored entities, in the order of slots. [Client.StateTick]
// returns the tick of the state that one shows.
//
// The loop may change the world, also its structure, and remove any of the entities: those that are gone when their
// turn comes are left out. It must not call [Client.Apply] or [Client.Close]. A reset of the world ends it.
func (c *Client) Entities() iter.Seq2[NetID, ecs.Entity] {
	c.mustExist()
	return func(yield func(NetID, ecs.Entity) bool) {
		c.apply.View.Each(func(id wire.NetID, e ecs.Entity) bool { return yield(NetID(id), e) })
	}
}

// StateTick returns the server tick of the state that a mirrored entity shows after [Client.Apply]. ok is false if e is
// not mirrored.
func (c *Client) StateTick(e ecs.Entity) (tick uint32, ok bool) {
	c.mustExist()
	return c.apply.View.Tick(e)
}

// Settled returns the newest tick as of which the client has received everything that it may see. An entity
// without a newer state was at that tick as the client has it. After the next [Client.Apply] the world shows
// all of that, and newer states where they have arrived. The tick never goes back within a session. ok is
// false until the server's first packets have arrived.
//
// Without loss, it is about two send intervals and the latency behind [Client.ServerTick]. It stands still while
// the content of a lost packet has not been sent again, and while the budget leaves something unsent. It costs
// no bytes.
func (c *Client) Settled() (tick uint32, ok bool) {
	c.mustExist()
	return uint32(c.recv.Settled.Tick), c.recv.Settled.Known
}

// RestedUntil returns the newest tick up to which a mirrored entity is known to have stayed in the state that it
// shows, beginning with [Client.StateTick]. That is [Client.Settled], unless the state is newer, or a newer one
// has arrived that Apply has not shown yet. Components under a condition such as [OwnerOnly] do not count. ok is
// false if e is not mirrored.
func (c *Client) RestedUntil(e ecs.Entity) (tick uint32, ok bool) {
	c.mustExist()
	return c.apply.View.RestedUntil(e)
}

// OnSpawn makes the client call fn for every entity that Apply spawns or adopts (see
// [Expect]), when all is as it was on the server, other entities and references included. The
// hooks of its components ([OnAdd]) follow.
//
// In a hook the world may be changed in any way: entities and components may be created
// and removed, mirrored ones too. What a hook removes is not announced to later ones.
// All methods of the client may be called but Apply, Receive and Close, which panic.
// A hook must close the queries that it makes. Hooks of one kind are called in the order
// in which they were registered, entities in no particular order. A hook can't be
// unregistered, and is not called for what was there before: see [Client.Entities].
//
// After [ecs.World.Reset], all entities are spawned anew, and hooks are called for it;
// what the reset removed is not announced. Entities that are taken over after a reconnect
// go on being what they were: they are neither despawned nor spawned.
func (c *Client) OnSpawn(fn func(e ecs.Entity)) {
	defer c.guard().Leave(c.guard().Enter(exclusive.OnSpawn))
	checkHook("OnSpawn", fn == nil)
	c.apply.Hooks.Spawned, c.apply.Hooks.Arriving = append(c.apply.Hooks.Spawned, fn), true
}

// OnDespawn makes the client call fn for every mirrored entity that Apply or Close is
// about to remove. The world is as it was before, so that the entity and all else can still
// be read. The hooks of its components ([OnRemove]) were called before. What the user
// removed, or a reset of the world, is not announced.
//
// See [Client.OnSpawn] for what a hook may do.
func (c *Client) OnDespawn(fn func(e ecs.Entity)) {
	defer c.guard().Leave(c.guard().Enter(exclusive.OnDespawn))
	checkHook("OnDespawn", fn == nil)
	c.apply.Hooks.Despawned, c.apply.Hooks.Parting = append(c.apply.Hooks.Despawned, fn), true
}

// Expects reports whether a local entity waits for the server's; see [Expect]. It does not
// any more when it was adopted: then [Client.NetID] returns what it mirrors.
func (c *Client) Expects(e ecs.Entity) bool {
	c.mustExist()
	return c.apply.Expected.Expects(e)
}

// Verify compares the mirrored entities in the world with the server's states that they
// show, and returns the first field that differs, in the order of slots and of the schema,
// or nil. The usual cause is a system of the client's that writes to a mirrored component:
// what it writes stays until the server's value changes, and then is lost.
//
// Fields are compared as codes, so that differences below their precision don't count.
// Entities and components that the user removed are passed over, and so is what is left
// of a session before until the new one shows it. It is meant for tests and for
// finding faults: it takes about the time of writing all these components. The world
// does not change; call it between Apply and the systems that may write, or after them.
func (c *Client) Verify() *Divergence {
	defer c.guard().Leave(c.guard().Enter(exclusive.ClientVerify))
	return publicDivergence(c.apply.Verify())
}

// Divergence returns the first field in which what the client holds was found to differ from what the server has, or
// nil: see [WithStateHash]. There is none when a session begins. A difference means a fault, of the library or of
// memory.
//
// Want is nil, since hashes do not contain it, and Got is what the client holds; a [NetID] where the field refers to an
// entity. If the ends differ in whether there is a component, Field is empty and Got and Want are bools.
func (c *Client) Divergence() *Divergence {
	c.mustExist()
	if d := c.apply.Hashes.Divergence; d != c.diverged.inside {
		c.diverged.inside, c.diverged.public = d, publicDivergence(d)
	}
	return c.diverged.public
}
