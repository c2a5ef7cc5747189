package playout

import "github.com/arche-replicate/arche-replicate/delta"

// Linger makes the client keep entities that the server removed until the moment of their end is shown: they complete
// their motion, and the functions of [replication.Client.OnDespawn] are called at the end of it. Without it, they are
// removed in the Apply in which their end arrives, which is earlier by the delay of play-out.
//
// They are removed in the first [replication.Client.Apply] after [Playout.Advance] has reached that moment, or earlier:
// as soon as another entity has their slot, if the world is reset, or if a new session shows that they have ended.
// Their components under a condition, such as [replication.OwnerOnly], are removed at once. An entity that the server
// spawns anew while it lingers, because it is in view again, remains the same entity and gets back what the user
// removed of it. A client that uses Linger must call Advance in every frame.
func Linger(p *Playout) {
	p.mustExist()
	p.inside.Apply.Lingering.MayEnd = func(tick delta.Tick) bool {
		return !p.clock.running || !tick.After(p.at.Tick)
	}
}
