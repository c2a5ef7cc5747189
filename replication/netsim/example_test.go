package netsim_test

import (
	"fmt"
	"time"

	"github.com/arche-replicate/arche-replicate/replication/netsim"
)

func Example() {
	const rate = 60 // ticks per second
	link := netsim.NewLink(1, netsim.Config{
		Latency: netsim.Ticks(50*time.Millisecond, rate),
		Loss:    0.25,
	})
	for tick := range 8 {
		// The server sends one packet per tick; a lost one is not an error.
		if err := link.Down.Send(fmt.Appendf(nil, "state %d", tick)); err != nil {
			panic(err)
		}
		link.Step()
		link.Down.Receive(func(packet []byte) {
			fmt.Printf("tick %d: client got %s\n", link.Down.Now(), packet)
		})
	}
	fmt.Printf("%d sent, %d lost, %d under way\n",
		link.Down.Stats().Sent, link.Down.Stats().Lost, link.Down.Pending())
	// Output:
	// tick 3: client got state 0
	// tick 4: client got state 1
	// tick 6: client got state 3
	// tick 7: client got state 4
	// tick 8: client got state 5
	// 8 sent, 1 lost, 2 under way
}

// The link gets worse, then recovers. Packets in flight are not affected.
func ExamplePipe_SetConfig() {
	pipe := netsim.NewPipe(1, netsim.Config{Latency: 2})
	send := func(s string) {
		if err := pipe.Send([]byte(s)); err != nil {
			panic(err)
		}
	}
	send("before")
	pipe.SetConfig(netsim.Config{Loss: 1}) // the cable is pulled
	send("during")
	pipe.SetConfig(netsim.Config{Latency: 1}) // and put back
	send("after")

	for pipe.Pending() > 0 {
		pipe.Step()
		pipe.Receive(func(packet []byte) { fmt.Printf("tick %d: %s\n", pipe.Now(), packet) })
	}
	// Output:
	// tick 1: after
	// tick 2: before
}

// A named profile, as from a command line, with less bandwidth to the server.
func ExampleParseProfile() {
	const rate = 20
	profile, err := netsim.ParseProfile("mobile")
	if err != nil {
		panic(err)
	}
	link := netsim.NewLink(7, profile.Config(rate))
	profile.Bandwidth = 32_000 // bytes a second
	link.Up.SetConfig(profile.Config(rate))
	fmt.Println(profile.Config(rate).Bandwidth, "bytes a tick up")
	// Output: 1600 bytes a tick up
}
