package replication

import "github.com/arche-replicate/arche-replicate/replication/internal/schema"

// OwnerOnly shows the component to the entity's owner only; see [Server.SetOwner]. No byte
// that others get depends on its values or on when they change.
func OwnerOnly() ComponentOption { return under(schema.Condition{Kind: schema.OwnerOnly}) }

// ExceptOwner shows the component to everybody but the entity's owner, who knows better:
// what it predicts itself, say.
func ExceptOwner() ComponentOption { return under(schema.Condition{Kind: schema.ExceptOwner}) }

// OnlyFor shows the component to the peers that the function picks. It is asked once for
// every peer in every Replicate, on the caller's goroutine, whatever the number of entities;
// it must not change the world. Components that shall share a condition, and its cost, must
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

// Once makes the server look at the component only when it is new, with the entity or by
// itself: what is sent to whomever and whenever is the value from then. Changes later on
// are not looked for, and cost nothing.
func Once() ComponentOption {
	return func(o *schema.Options) { o.Once = true }
}

func under(c schema.Condition) ComponentOption {
	return func(o *schema.Options) { o.Conditions = append(o.Conditions, c) }
}
