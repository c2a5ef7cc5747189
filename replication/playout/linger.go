package playout

import "github.com/arche-replicate/arche-replicate/delta"

// Linger makes the client keep entities that the server removed until the moment of their end is shown: they go all of
// their way, and the functions of [replication.Client.OnDespawn] are called at the end of it. Without it, they are gone
// with the Apply that learns of their end, which is earlier by the delay of play-out.
//
// They go in the first [replication.Client.Apply] after [Playout.Advance] has come to that moment, or earlier: as soon
// as another entity has their slot, if the world is reset, or if a new session shows that they have ended. What they
// have under a condition, such as [replication.OwnerOnly], goes at once. One that the server spawns anew while it
// lingers, since it is in view again, goes on as the same entity, with what the user removed of it. A client that uses
// Linger must call Advance in every frame.
func Linger(p *Playout) {
	p.mustExist()
	p.inside.Apply.Lingering.MayEnd = func(tick delta.Tick) bool {
		return !p.clock.running || !tick.After(p.at.Tick)
	}
}
