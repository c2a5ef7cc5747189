// Package interpolation shows a client's world as it was a short while ago, so that entities move smoothly at any frame
// rate, although states arrive at most once per server tick, late, in bursts, or not at all.
//
//	client := replication.NewClient(&world, schema)
//	client.SetSend(send)
//	interpolation.Attach(client)
//
//	for range frames {
//		receive(client)          // packets that have arrived
//		err := client.Frame(dt)  // the time since the last frame
//		draw(world)
//	}
//
// The schema declares how components look between two states: see [replication.Register]. The states are those that the
// client holds anyway. The delay is as long as the network requires: the send interval is known, and how long packets
// take and how many are lost is measured all the time. See docs/interpolation.md.
package interpolation
