package replication

import (
	"reflect"

	"github.com/arche-replicate/arche-replicate/replication/internal/exclusive"
	"github.com/mlange-42/arche/ecs"
)

// Expect makes a local entity wait for the server's: when an entity comes from the server
// whose component T has the same codes as this one's has now, the client adopts the local
// one for it. From then on the local entity is the mirror: it has the server's components,
// in place of its own where it has the same, and keeps all others. Hooks are called for it
// as for one that is spawned.
//
//	type Shot struct { // the signature
//		Owner  ecs.Entity
//		Number uint16
//	}
//
//	e := world.NewEntity(positionID, shotID) // predicted
//	*(*Shot)(world.Get(e, shotID)) = Shot{Owner: me, Number: next}
//	replication.Expect[Shot](client, e, 60)
//
// ticks is for how many ticks of the client's time it may be adopted, see [Client.Advance], 0 for as long as it takes.
// The first [Client.Apply] after them ends its waiting, and so does removing the entity or resetting the world; see
// [Client.Expects]. The library never removes it: what the server never confirms is the user's to remove.
//
// The signature's fields that refer to entities mean what those mirror; those that mirror
// nothing count as none. Where several entities wait with the same signature, the one that
// was expected first is adopted first, and one that comes when none waits is spawned. T
// must be with the entity when it comes; that it gets T later does not count. An entity
// that came before it was expected is not looked at.
//
// An entity waits with one signature: to expect it again replaces what was before.
//
// Panics if T is not in the schema, the entity is dead, has no T or is mirrored already, or
// if ticks is negative.
func Expect[T any](c *Client, e ecs.Entity, ticks int) {
	defer c.guard().Leave(c.guard().Enter(exclusive.Expect))
	k := c.apply.View.Number("Expect", reflect.TypeFor[T]())
	c.apply.NoticeReset()
	c.apply.Expected.Expect(k, e, ticks)
}
