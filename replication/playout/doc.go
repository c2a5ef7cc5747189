// Package playout shows a client's world as it was a short while ago, so that it moves smoothly however the states of
// it came: at most one in a tick of the server, late, in bursts, or not at all.
//
//	p := playout.New(client)           // after replication.NewClient
//	playout.Interpolate[Position](p)
//
//	for range frames {
//		client.Advance(dt)         // the time since the last frame
//		receive(client)
//		err := client.Apply()
//		p.Advance(dt)              // Position is now what it was at p.Time
//		draw(world)
//	}
//
// The states come from what the client holds anyway: nothing is recorded a second time. What is shown is as late as the
// network makes necessary, which is measured all the time: the time between two states, how long packets take, and how
// many get lost. See docs/interpolation.md.
package playout
