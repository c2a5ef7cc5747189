// Package playout interpolates: it shows a client's world as it was a short while ago, so that entities move smoothly
// at any frame rate, although states arrive at most once per server tick, late, in bursts, or not at all.
//
//	p := playout.New(client)           // after replication.NewClient
//	playout.Interpolate[Position](p)
//
//	for range frames {
//		client.Advance(dt)         // the time since the last frame
//		receive(client)            // packets that have arrived
//		err := client.Apply()
//		p.Advance(dt)              // Position is now what it was at p.Time
//		draw(world)
//	}
//
// It uses the states that the client holds anyway and records none. The delay is as long as the network
// requires: play-out knows the send interval, and keeps measuring how long packets take and how many are lost. See
// docs/interpolation.md.
package playout
