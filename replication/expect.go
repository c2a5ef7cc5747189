package replication

import (
	"fmt"
	"reflect"
	"time"

	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/arche-replicate/arche-replicate/replication/internal/exclusive"
	"github.com/mlange-42/arche/ecs"
)

// Expect makes a local entity wait for the server's. When an entity of the server arrives whose component T, the
// signature, has the same codes as the local entity's has now, the local entity becomes its replica: it gets the
// server's components, in place of its own where it has the same, and keeps all others. Hooks are called for it as for
// one that is spawned.
//
//	type Shot struct { // the signature
//		Owner  ecs.Entity
//		Number uint16
//	}
//
//	e := world.NewEntity(positionID, shotID)
//	*(*Shot)(world.Get(e, shotID)) = Shot{Owner: me, Number: next}
//	replication.Expect[Shot](client, e, time.Second)
//
// It waits for the given time, 0 for as long as it takes, until the first [Client.Frame] after that, or until the
// entity is removed, the world is reset, or Expect is called for it again. What the server never confirms is the user's
// to remove; see [Client.Expects].
//
// References to replicas in the signature are compared as references to the server's entities; other references count
// as none. Of several entities with the same signature, the one that was expected first is matched first. Entities that
// arrived before the call, or get a T later than they arrive, are not matched.
//
// Panics if T is not a component of the schema, if the entity is dead, has no T or is a replica already, or if within
// is not 0, or 1 ms to 240 hours.
func Expect[T any](c *Client, e ecs.Entity, within time.Duration) {
	defer c.guard().Leave(c.guard().Enter(exclusive.Expect))
	k := c.apply.View.Number("Expect", reflect.TypeFor[T]())
	c.apply.NoticeReset()
	if within != 0 && within < time.Millisecond || within > 240*time.Hour {
		panic(fmt.Sprintf("replication: Expect: %v: use 1ms to 240 hours, or 0 for as long as it takes", within))
	}
	c.apply.Expected.Expect(k, e, config.Ticks(within, int(c.clock.Rate)))
}
