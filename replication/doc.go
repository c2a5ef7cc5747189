// Package replication keeps Arche worlds on other machines equal to one world, over a network that loses, delays,
// duplicates and reorders packets.
//
// One process is authoritative: a [Server] with an Arche world, and a [Peer] for each client. On every other machine, a
// [Client] makes a world follow it. The package has no sockets, no clocks and, but for [Tuning], no goroutines: the
// game's loop calls it, and functions of the game carry its packets.
//
// Both ends need the same [Schema].
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
//	world.NewEntity(positionID, ecs.ComponentID[replication.Replicated](&world)) // the marker opts in
//	for { // every tick
//		peer.Receive(packet) // for each packet that has arrived from that client
//		// systems run
//		server.Replicate()
//	}
//
//	// The client.
//	client := replication.NewClient(&clientWorld, schema)
//	client.SetSend(func(packet []byte) error { return conn.Send(packet) })
//	for { // every frame
//		client.Receive(packet)   // for each packet that has arrived from the server
//		err := client.Frame(dt)  // the world changes here, and in Close; an error is final
//	}
//
// # Where to read on
//
// Most games need the first three.
//
//   - What is replicated: [Register], [RegisterResource]; for types of other packages [Field], [As] and [With]; who
//     gets a component and how often: [OwnerOnly], [Every].
//   - The server: [NewServer], [Server.Connect], [Peer.Receive], [Server.Replicate]; the marker [Replicated].
//   - The client: [NewClient], [Client.Receive], [Client.Frame], [Client.Complete].
//   - The same entity at both ends: [NetID], [Server.Entity], [Client.Entity], [Client.Entities].
//   - What changed at the client: [OnSpawn], [OnDespawn], [OnAdd], [OnChange], [OnRemove]; entities that the game
//     spawned ahead of the server: [Expect].
//   - Messages: [RegisterMessage]; from the server [SendToClient], [SendToAll], [SendToViewers] and [OnServerMessage];
//     from clients [SendToServer] and [OnClientMessage].
//   - Inputs and time: [WithTickRate], [Client.ServerTime]; [RegisterInput], [OnInput] at the client, [Input] at the
//     server.
//   - Smooth motion: package interpolation. What a client showed when its player acted: package rewind.
//   - Clients that come and go: [Server.OnJoin], [Server.OnConnect], [Server.OnDisconnect], [Peer.SetData],
//     [Client.Status], [Client.Reconnect].
//   - What a peer may see: [Peer.SetInterest], [Grid], [EntitySet], [Server.SetOwner]; what must change together:
//     [Group].
//   - What a peer is sent, and when: [Peer.SetBudget], [Peer.SetSendInterval], [Priority], [WithCoding].
//   - What happened, and faults: [Server.Stats], [Peer.Stats], [Client.Stats], [Client.Verify], [Tuning].
//
// The guide in docs has a page on each of these. Package [netsim] simulates bad networks for tests.
//
// # Guarantees
//
//   - A replica, the client's copy of a server's entity, always shows one state that the entity had at the server,
//     quantised, of one tick, all components together; it never goes back to an earlier one. So do the resources of a
//     world together. Components under one condition, such as [OwnerOnly], are a state of their own in this respect.
//   - A reference to an entity becomes a reference to its replica, or the zero entity while the client has none.
//   - When changes stop and packets get through, the client's state becomes equal to the server's, code for code.
//   - A message is delivered once, in order, and not before the world is as it was when the message was sent, unless
//     its type has options that change this.
//   - No packet of the server is larger than its MTU, see [WithMTU], and a lost state packet costs nothing but time.
//   - Nothing from the wire panics, loops or allocates without bound. Receive returns an error and the connection
//     continues.
//
// Packets are neither encrypted nor authenticated.
//
// # Misuse
//
// Misuse panics with a sentence that begins with "replication: " and gives the remedy. The rules are the same
// everywhere:
//
//   - A nil or zero world, server, client, peer, set or group is refused, and so is a nil schema, function, filter or
//     option, unless nil has a documented meaning. A zero [Schema] is an empty one.
//   - A server with its peers, sets and groups is for one goroutine at a time, and so is a client. A call that comes
//     while another goroutine is in one usually panics; use Go's race detector as well. Functions of the user run on
//     the goroutine of the call that they run in, and may make calls of their own, unless their documentation forbids
//     it.
//   - Any entity handle may be passed. A handle of a removed entity, or from before a reset of the world, refers to
//     nothing; where an entity is needed, as for [Server.SetOwner] and [Expect], it is refused. If the world has reused
//     the handle, it refers to the new entity.
//   - Methods may still be called after the end. After [Server.Close], [Client.Close], [Client.Detach],
//     [Client.Disconnect] and [Peer.Disconnect], getters return the last values, sends return [ErrNotConnected],
//     Receive returns [ErrUnexpected], [Client.Frame] returns the reason, and everything else has no effect. Only
//     [Server.Connect], [Server.Replicate] and [Client.Reconnect] panic after a Close. A closed client delivers no more
//     messages.
//   - The functions that Replicate calls for a peer, those of an [Interest], of [OnlyFor] and of
//     [Peer.SetPriorityFunc], must not end connections or receive packets: calls that may do so panic in them.
//
// [netsim]: https://pkg.go.dev/github.com/arche-replicate/arche-replicate/replication/netsim
package replication
