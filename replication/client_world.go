package replication

import (
	"iter"

	"github.com/arche-replicate/arche-replicate/replication/internal/archeutil"
	"github.com/arche-replicate/arche-replicate/replication/internal/exclusive"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// Entity returns the replica of the server's entity with the given ID.
func (c *Client) Entity(id NetID) (ecs.Entity, bool) {
	c.mustExist()
	return c.apply.View.Entity(wire.NetID(id))
}

// NetID returns the ID of the server's entity of which e is the replica.
func (c *Client) NetID(e ecs.Entity) (NetID, bool) {
	c.mustExist()
	id, ok := c.apply.View.NetID(e)
	return NetID(id), ok
}

// Entities returns an iterator over the replicas, in the order of slots. The loop may change the world and remove
// replicas: those that are gone when their turn comes are left out. It must not call [Client.Frame] or [Client.Close].
// A reset of the world ends it.
func (c *Client) Entities() iter.Seq2[NetID, ecs.Entity] {
	c.mustExist()
	return func(yield func(NetID, ecs.Entity) bool) {
		c.apply.View.Each(func(id wire.NetID, e ecs.Entity) bool { return yield(NetID(id), e) })
	}
}

// StateTick returns the server tick of the state that a replica shows after [Client.Frame]. ok is false if e is not a
// replica. Until a new session is [Client.Complete], replicas may be left over from the one before, with ticks perhaps
// of another server.
func (c *Client) StateTick(e ecs.Entity) (tick Tick, ok bool) {
	c.mustExist()
	return c.apply.View.Tick(e)
}

// Settled returns the newest tick as of which the client has received everything that it may see: an entity without a
// newer state was at that tick in the state that the client has. The world shows all of that after the next
// [Client.Frame]. The tick never goes back within a session. ok is false until the server's first packets have arrived.
//
// Without loss, it is about two send intervals and the latency behind [Client.ServerTime]. It stands still for about a
// round trip or more after a loss, while the budget leaves something unsent, and after a change of the send interval.
func (c *Client) Settled() (tick Tick, ok bool) {
	c.mustExist()
	return c.recv.Settled.Tick, c.recv.Settled.Known
}

// KnownUntil returns the tick up to which the server's entity is known to have been in the state that its replica
// shows, from [Client.StateTick] on. It is [Client.Settled], unless the state is newer, or a newer one has arrived that
// Frame has not shown yet. Components under a condition such as [OwnerOnly] do not count. ok is false if e is not a
// replica. For replicas that are left over from an earlier session it is the StateTick.
func (c *Client) KnownUntil(e ecs.Entity) (tick Tick, ok bool) {
	c.mustExist()
	return c.apply.View.KnownUntil(e)
}

// HasEnded reports whether the server's entity, of which e is the replica, has ended: it was removed, or lost its
// marker. In a hook of [OnDespawn], false means that it lives on out of view of the client, or that the client does not
// know: in [Client.Close], when a new session shows that an entity is gone, and seldom after much packet loss. The
// server does not report the end of an entity out of view, unless [Interest] keeps it. It is false if e is no replica
// of this client's.
//
// Panics if e is not in the world any more, as after the Frame that removed it.
func (c *Client) HasEnded(e ecs.Entity) bool {
	c.mustExist()
	if !archeutil.Alive(c.apply.View.World, e) {
		panic("replication: HasEnded of an entity that is not in the client's world: call it in a hook, " +
			"which is before Frame removes it")
	}
	return c.apply.HasEnded(e)
}

// OnDrain makes the client call fn when there is room for messages to the server again: a reliable message was refused
// with [ErrBufferFull], and now at most half of the buffer is in use. fn is called in [Client.Frame], once until the
// buffer is full again, but not for a new session.
//
// fn may do what one of [OnServerMessage] may. Panics if fn is nil.
func (c *Client) OnDrain(fn func()) {
	defer c.guard().Leave(c.guard().Enter(exclusive.ClientOnDrain))
	checkHook("OnDrain", fn == nil)
	if c.messages == nil {
		return // no messages
	}
	c.messages.Drained = append(c.messages.Drained, func() {
		was := c.calls.Open()
		fn()
		c.calls.Leave(was)
	})
}

// Expects reports whether a local entity still waits for the server's; see [Expect]. If it was matched, [Client.NetID]
// returns an ID.
func (c *Client) Expects(e ecs.Entity) bool {
	c.mustExist()
	return c.apply.Expected.Expects(e)
}

// Verify compares the replicas and resources in the world with the server's states that they show, and returns the
// first field that differs, in the order of slots and of the schema, or nil. The usual cause is a system of the client
// that writes to a replicated component.
//
// Fields are compared as codes, so differences below their precision don't count. Verify skips entities, components and
// resources that the user removed, and leftovers of an earlier session that the new one does not show yet. It takes
// about as long as writing all these components. Call it between Frame and the systems that may write, or after them.
func (c *Client) Verify() *Divergence {
	defer c.guard().Leave(c.guard().Enter(exclusive.ClientVerify))
	return publicDivergence(c.apply.Verify())
}

// Divergence returns the first field in which the client's state was found to differ from the server's by
// [Tuning].StateHash, or nil. It is nil when a session begins.
//
// Want is nil, since hashes do not contain it, and Got is what the client holds; a [NetID] if the field refers to an
// entity. If only one end has the component, Field is empty and Got and Want are bools.
func (c *Client) Divergence() *Divergence {
	c.mustExist()
	if d := c.apply.Hashes.Divergence; d != c.diverged.inside {
		c.diverged.inside, c.diverged.public = d, publicDivergence(d)
	}
	return c.diverged.public
}
