package replication_test

import (
	"bytes"
	"fmt"
	"time"

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
)

type Position struct {
	X, Y float32 `repl:"range=-100:100,step=0.01"`
}

type Health struct {
	HP int16 `repl:"range=0:100"`
}

// A server and a client in one process. The network is two slices.
func Example() {
	schema := replication.NewSchema()
	replication.Register[Position](schema)
	replication.Register[Health](schema)

	world, mirror := ecs.NewWorld(), ecs.NewWorld()
	var toClient, toServer [][]byte
	server := replication.NewServer(&world, schema)
	peer := server.Connect(func(packet []byte) error {
		toClient = append(toClient, bytes.Clone(packet)) // the server reuses packet after this call
		return nil
	})
	client := replication.NewClient(&mirror, schema)
	client.SetSend(func(packet []byte) error {
		toServer = append(toServer, bytes.Clone(packet))
		return nil
	})

	positionID, healthID := ecs.ComponentID[Position](&world), ecs.ComponentID[Health](&world)
	ship := world.NewEntity(positionID, healthID, ecs.ComponentID[replication.Replicated](&world))

	for tick := range 6 {
		// The game.
		(*Position)(world.Get(ship, positionID)).X += 1.5
		(*Health)(world.Get(ship, healthID)).HP = int16(100 - tick)
		server.Replicate()

		// The network, then the client's frame.
		for _, packet := range toClient {
			if err := client.Receive(packet); err != nil {
				fmt.Println(err)
			}
		}
		toClient = toClient[:0]
		if err := client.Frame(time.Second / 60); err != nil {
			fmt.Println(err)
		}
		for _, packet := range toServer {
			if err := peer.Receive(packet); err != nil {
				fmt.Println(err)
			}
		}
		toServer = toServer[:0]
	}

	mirrorPositionID, mirrorHealthID := ecs.ComponentID[Position](&mirror), ecs.ComponentID[Health](&mirror)
	for id, e := range client.Entities() {
		tick, _ := client.StateTick(e)
		p, h := (*Position)(mirror.Get(e, mirrorPositionID)), (*Health)(mirror.Get(e, mirrorHealthID))
		fmt.Printf("entity %v at tick %d: %v %v\n", id, tick, *p, *h)
	}
	// Output: entity 0.1 at tick 5: {9 0} {95}
}

// Tags select how fields are coded. The text of the schema shows the result; it must be the same on
// both ends.
func ExampleRegister() {
	type Turret struct {
		Heading float32    `repl:"angle,bits=10"`
		Aim     [3]float32 `repl:"unit,bits=8"`
		Heat    float32    `repl:"range=0:1,step=0.05"`
		Ammo    [2]uint8   `repl:"range=0:60"`
		Armed   bool
		Target  *Turret `repl:"-"` // local, not replicated
	}
	type Frozen struct{} // a tag component: its presence is replicated

	schema := replication.NewSchema()
	replication.Register[Turret](schema)
	replication.Register[Frozen](schema)
	fmt.Print(schema.Text())
	// Output:
	// arche-replicate schema 1
	// component Turret
	// Turret.Heading float32 angle,bits=10,period=6.283185307179586
	// Turret.Aim [3]float32 unit,bits=8
	// Turret.Heat float32 range=0:1,step=0.05
	// Turret.Ammo [2]uint8 range=0:60
	// Turret.Armed bool
	// component Frozen
}

// Transform stands for a type of another module, which has no repl tags.
type Transform struct {
	Pos      struct{ X, Y, Z float64 }
	Rotation [4]float64
	Dirty    bool
}

// Fields of a type from another module get their tags by path.
func ExampleField() {
	schema := replication.NewSchema()
	replication.Register[Transform](schema,
		replication.Field("Pos.X", "range=-500:500,step=0.01"),
		replication.Field("Pos.Y", "range=-500:500,step=0.01"),
		replication.Field("Pos.Z", "range=0:100,precision=0.005"),
		replication.Field("Rotation", "quat,bits=9"),
		replication.Field("Dirty", "-"),
	)
	fmt.Print(schema.Text())
	fmt.Println(schema.Codes(Transform{Rotation: [4]float64{0, 0, 0, 1}}, nil))
	// Output:
	// arche-replicate schema 1
	// component Transform
	// Transform.Pos.X float64 range=-500:500,step=0.01
	// Transform.Pos.Y float64 range=-500:500,step=0.01
	// Transform.Pos.Z float64 range=0:100,precision=0.005
	// Transform.Rotation [4]float64 quat,bits=9
	// [50000 50000 0 3 255 255 255]
}

// A quarter of all packets is lost in either direction. The client's world lags, then catches up.
func Example_lossyLink() {
	schema := replication.NewSchema()
	replication.Register[Position](schema)
	world, mirror := ecs.NewWorld(), ecs.NewWorld()
	link := netsim.NewLink(1, netsim.Config{Latency: 3, Loss: 0.25}) // ticks, share
	server := replication.NewServer(&world, schema)
	peer := server.Connect(link.Down.Send)
	client := replication.NewClient(&mirror, schema)
	client.SetSend(link.Up.Send)

	positionID := ecs.ComponentID[Position](&world)
	var ships []ecs.Entity
	for range 50 {
		ships = append(ships, world.NewEntity(positionID, ecs.ComponentID[replication.Replicated](&world)))
	}
	for tick := range 300 {
		if tick < 250 { // then nothing changes
			for i, ship := range ships {
				(*Position)(world.Get(ship, positionID)).X += float32(i) / 1000
			}
		}
		server.Replicate()
		link.Step()
		link.Down.Receive(func(packet []byte) { _ = client.Receive(packet) }) // errors are counted in its Stats
		if err := client.Frame(time.Second / 60); err != nil {
			fmt.Println(err)
		}
		link.Up.Receive(func(packet []byte) { _ = peer.Receive(packet) })
	}

	lost := peer.Stats().Lost
	equal := 0
	for _, ship := range ships {
		id, _ := server.NetID(ship)
		e, _ := client.Entity(id)
		theirs := (*Position)(mirror.Get(e, ecs.ComponentID[Position](&mirror)))
		ours := (*Position)(world.Get(ship, positionID))
		if fmt.Sprint(schema.Codes(ours, nil)) == fmt.Sprint(schema.Codes(theirs, nil)) {
			equal++
		}
	}
	fmt.Printf("packets lost: %v; ships equal: %d of %d\n", lost > 0, equal, len(ships))
	// Output: packets lost: true; ships equal: 50 of 50
}
