package replication

import (
	"fmt"
	"math"
	"reflect"

	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// Name gives the component a name other than that of its Go type. Both ends must use the same one.
func Name(name string) TypeOption {
	return typeOption(func(o *schema.Options) { o.Name, o.Named = name, true })
}

// Every makes the server capture the component on every n-th tick only; the entities are spread over the ticks. So what
// is sent is at most n-1 ticks old. The component is captured at once when its entity is new, gains it, or enters or
// leaves a [Group]. For motion that clients interpolate, use [Peer.SetSendInterval] instead.
//
// Panics if n is not 1 to 60.
func Every(n int) ComponentOption {
	if n < 1 || n > wire.MaxInterval {
		panic(fmt.Sprintf("replication: Every(%d): use 1 to %d ticks", n, wire.MaxInterval))
	}
	return componentOption(func(o *schema.Options) { o.Every = n })
}

// Priority gives entities that have the component a weight of at least w; the default is 1. If a peer's budget (see
// [Peer.SetBudget]) does not suffice, the entities with the largest sums of weights over the ticks that they waited are
// sent first.
//
// Panics if w is less than 1.
func Priority(w float32) ComponentOption {
	if !(w >= 1) {
		panic(fmt.Sprintf("replication: Priority(%v): use 1 or more", w))
	}
	return componentOption(func(o *schema.Options) { o.Priority = w })
}

// OwnerOnly shows the component to the entity's owner only; see [Server.SetOwner]. No byte
// that others get depends on its values or on when they change.
func OwnerOnly() ComponentOption { return under(schema.Condition{Kind: schema.OwnerOnly}) }

// ExceptOwner shows the component to everybody but the entity's owner, for instance because the owner predicts it.
func ExceptOwner() ComponentOption { return under(schema.Condition{Kind: schema.ExceptOwner}) }

// OnlyFor shows the component to the peers that the function picks. Every Replicate calls it once for every peer, on
// the caller's goroutine; it must not change the world, the server or its peers. Components share a condition if they
// share the option:
//
//	referees := replication.OnlyFor(isReferee)
//	replication.Register[Foul](schema, referees)
//	replication.Register[Warning](schema, referees)
//
// Panics if there is no function.
func OnlyFor(pick func(p *Peer) bool) ComponentOption {
	if pick == nil {
		panic("replication: OnlyFor needs a function that picks peers")
	}
	return under(schema.Condition{Kind: schema.OnlyFor, Ask: &pick})
}

// Once makes the server capture the component only when it is new, with its entity or by itself: everybody to whom it
// is ever sent gets the value from then.
func Once() ComponentOption {
	return componentOption(func(o *schema.Options) { o.Once = true })
}

// Newest exempts the component from interpolation: clients show its newest state, and package rewind judges by that.
// Both ends must agree.
func Newest() ComponentOption {
	return componentOption(func(o *schema.Options) { o.Newest = true })
}

// Snap makes a change of more than distance per server tick a teleport, which is not interpolated. The change is the
// length of the vector of all fields that move linearly, in their units: floats and integers, but nothing that turns or
// wraps. If the server can count teleports, the tag cut is better. Both ends must agree.
//
// Panics if distance is not positive and finite; [Register] panics if no field moves linearly.
func Snap(distance float64) ComponentOption {
	if !(distance > 0 && distance <= math.MaxFloat64) {
		panic(fmt.Sprintf("replication: Snap(%v): use the distance above 0 that nothing moves in a tick", distance))
	}
	return componentOption(func(o *schema.Options) { o.Snap = distance })
}

// Hermite interpolates the floats of the component that move linearly along cubic curves: the floats of the component
// V, in their order, are their velocities at each state. A velocity times perTick is the distance covered in a server
// tick: for velocities per second, perTick is 1 divided by the tick rate. Both ends must agree.
//
// Panics if perTick is 0 or not finite; [Register] panics unless V is registered already, under the same condition,
// with a linear float of the same type for each.
func Hermite[V any](perTick float64) ComponentOption {
	return HermiteType(reflect.TypeFor[V](), perTick)
}

// HermiteType is [Hermite] for a type known at run time.
func HermiteType(v reflect.Type, perTick float64) ComponentOption {
	if perTick == 0 || math.IsInf(perTick, 0) || math.IsNaN(perTick) {
		panic(fmt.Sprintf("replication: Hermite(%v): use the way that a velocity of 1 covers in a tick, "+
			"such as 1.0/30", perTick))
	}
	return componentOption(func(o *schema.Options) { o.Velocity, o.PerTick = v, perTick })
}

func under(c schema.Condition) ComponentOption {
	return componentOption(func(o *schema.Options) { o.Conditions = append(o.Conditions, c) })
}

// Field gives a field the tag that its struct can't have because it is another package's:
//
//	replication.Register[physics.Body](schema,
//		replication.Field("Pos.X", "range=-500:500,step=0.01"),
//		replication.Field("Cache", "-"))
//
// tag is the text of a repl tag, see [Register]. It replaces the field's own tag; an empty one takes it away.
//
// path is the field's name, preceded by the names of the structs around it and dots: "Gun.Heat". It has no indices: the
// tag of an array, or of a field of the structs in an array, applies to every element. The empty path is the component
// itself, if its type is a number or an array.
//
// Registering the type panics if it has no such field, or if the tag does not suit it.
func Field(path, tag string) TypeOption {
	return typeOption(func(o *schema.Options) {
		o.Fields = append(o.Fields, schema.FieldOverride{Path: path, Tag: tag})
	})
}
