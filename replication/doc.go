// Package replication keeps Arche worlds on other machines equal to one world, over a network that loses, delays,
// duplicates and reorders packets. It sends what changed, quantised, predicted and packed to the bit.
//
// One process owns the truth: a [Server] with an Arche world. Others follow it: a [Client] each, with a world of its own.
// The server has a [Peer] for every client. The package has no sockets and no clocks, and no goroutines but for
// [WithWorkers]: the game's loop calls it, and functions that the game hands over carry its packets.
//
//	                 in                                             out
//	server    the world, once per tick: [Server.Replicate]           packets to every peer, through the function of [Server.Connect]
//	          packets from that client: [Peer.Receive]               its messages and inputs: [OnClientMessage], [Input]
//	client    packets from the server: [Client.Receive]              the world, changed by [Client.Apply]
//	          inputs: [SetInput]                                     the server's messages: [OnServerMessage]
//	                                                                 packets to the server, through the function of [NewClient]
//	both      messages: [SendToClient], [SendToServer]
//
// Both ends need the same [Schema]: the types of components and resources that are replicated, the types of
// messages and inputs, and how each of their fields is coded.
//
//	type Position struct {
//		X, Y float32 `repl:"range=-1000:1000,step=0.01"`
//	}
//
//	schema := replication.NewSchema()
//	replication.Register[Position](schema)
//
//	// The server.
//	server := replication.NewServer(&world, schema)
//	peer := server.Connect(func(packet []byte) error { return conn.Send(packet) })
//	world.NewEntity(positionID, replication.ReplicatedID(&world)) // the marker opts in
//	for { // every tick
//		peer.Receive(packet) // what came from that client
//		// systems run
//		server.Replicate()
//	}
//
//	// The client.
//	client := replication.NewClient(&mirror, schema, func(packet []byte) error { return conn.Send(packet) })
//	for { // every frame
//		client.Receive(packet) // what came from the server
//		err := client.Apply()  // the world changes here, and only here
//	}
//
// # What is promised
//
//   - An entity in a client's world always shows one state that it had at the server, quantised, of one tick, all components
//     together; and it never goes back to an earlier one. The same holds apart for those components that stand under one
//     condition, as [OwnerOnly].
//   - So do all resources together, in every client's world.
//   - What refers to an entity at the server refers to its mirror at the client, or to nobody if that is not there.
//   - When changes stop and packets get through, the mirrored state becomes equal to the server's, code for code.
//   - A message is handed over once, in order, and not before the world is as it was when it was sent, unless its type wants
//     something else.
//   - A lost packet costs nothing but time: the next one is taken against what the client has acknowledged.
//   - A client whose server fell silent, was started anew or dropped it finds it again by itself; see [Client.Status].
//   - No packet of the server is larger than [WithMTU] says, and each can be decoded without those before it.
//   - Nothing from the wire panics, loops or allocates without bound. Receive returns an error and the connection goes on.
//   - Misuse, such as a component that can't be replicated, panics with a sentence that says how to mend it.
//
// # Misuse
//
// The value of such a panic is a text that begins with "replication: ". The rules are the same everywhere:
//
//   - nil is refused wherever a world, schema, server, client, peer, function, filter, set or option is needed. Where it means
//     something, as for [OnClientMessage] and [Server.SetOwner], the documentation says what.
//   - A [Server], [Client], [Peer], [EntitySet] or [Group] that is zero is refused as nil is. A zero [Schema] has no
//     components, as one of [NewSchema].
//   - Handles of entities may be any. One of an entity that was removed, or of any from before a reset of the world, names
//     nobody; where an entity is needed, as for [Server.SetOwner] and [Expect], it is refused. If the world gave the handle out
//     anew, it is that of the new entity.
//   - What has ended may still be called, since a game learns of the end at its own pace. After [Server.Close],
//     [Client.Close] and [Peer.Disconnect] what asks answers as of the end, what sends returns [ErrNotConnected], what
//     receives returns [ErrUnexpected], and the rest does nothing. Refused is only what would begin again: [Server.Connect],
//     [Server.Replicate] and [Client.Reconnect].
//
// # What is not
//
// Packets are neither encrypted nor authenticated. The methods of a Server and its Peers belong to one goroutine, those of
// a Client to one as well. See the guide in the directory docs for the wire format, transports and limits.
//
// Package [netsim] simulates bad networks for tests.
//
// [netsim]: https://pkg.go.dev/github.com/arche-replicate/arche-replicate/replication/netsim
package replication
