package main

import (
	"syscall/js"
	"time"

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/replication"
)

// run is a client without the page: packets in and out, inputs, a message, and what is shown.
func run(world *ecs.World, client *replication.Client) {
	page := js.Global()
	out := page.Get("Uint8Array").New(1 << 11)
	client.SetSend(func(packet []byte) error {
		page.Call("send", out, js.CopyBytesToJS(out, packet))
		return nil
	})
	replication.OnServerMessage(client, func(w Welcome) { page.Call("welcome", int(w.Ship)) })
	replication.OnInput(client, func(replication.Tick) Controls { return Controls{Thrust: 1} })
	in := make([]byte, 1<<11)
	page.Set("receive", js.FuncOf(func(_ js.Value, args []js.Value) any {
		return client.Receive(in[:js.CopyBytesToGo(in, args[0])]) == nil
	}))
	position := ecs.ComponentID[Position](world)
	page.Set("frame", js.FuncOf(func(_ js.Value, args []js.Value) any {
		if err := client.Frame(time.Duration(args[0].Float() * float64(time.Millisecond))); err != nil {
			return err.Error()
		}
		query := world.Query(ecs.All(position))
		for query.Next() {
			p := (*Position)(query.Get(position))
			page.Call("draw", p.X, p.Y)
		}
		return nil
	}))
	select {}
}
