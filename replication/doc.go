// Package replication keeps Arche worlds on other machines equal to one world, over a network that loses, delays,
// duplicates and reorders packets. It sends what changed, quantised, predicted and packed to the bit.
//
// One process is authoritative: a [Server] with an Arche world. On every other machine, a [Client] makes a world of its
// own follow it. The server has a [Peer] for each client. The package has no sockets, no clocks and no goroutines but
// those of [Tuning]: the game's loop calls it, and functions of the game carry its packets.
//
// Both ends need the same [Schema]. It lists the types of components and resources to replicate, the types of messages
// and inputs, and how each of their fields is coded.
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
//	client := replication.NewClient(&clientWorld, schema, func(packet []byte) error { return conn.Send(packet) })
//	for { // every frame
//		client.Receive(packet)   // for each packet that has arrived from the server
//		err := client.Frame(dt)  // the world changes here, and in Close; an error is final
//	}
//
// # Where to read on
//
// In this order; most games need the first three.
//
//   - What is replicated: [NewSchema], [Register] with the tags of fields, [RegisterResource]; for types of other
//     packages [Field], [As] and [With]; who gets a component and how often: [OwnerOnly], [ExceptOwner], [OnlyFor],
//     [Every], [Once].
//   - The server: [NewServer], [Server.Connect], [Peer.Receive], [Server.Replicate], [Server.Tick], [Server.Close]; the
//     marker [Replicated].
//   - The client: [NewClient], [Client.Receive], [Client.Frame], [Client.Complete], [Client.Tick], [Client.Close],
//     [Client.Detach].
//   - The same entity at both ends: [NetID], [Server.NetID], [Server.Entity], [Client.NetID], [Client.Entity],
//     [Client.Entities], the component [Replica]; of which tick it is: [Client.StateTick].
//   - What changed at the client: [OnSpawn], [OnDespawn], [Client.HasEnded], [OnAdd], [OnChange],
//     [OnRemove]; entities that the game spawned ahead of the server: [Expect].
//   - Messages: [RegisterMessage]; from the server [SendToClient], [SendToAll] and [SendToViewers], which
//     [OnServerMessage] handles; from clients [SendToServer], which [OnClientMessage] handles.
//   - Inputs and time: [WithTickRate], [Client.ServerTime]; [RegisterInput], [OnInput] at the client, [Input] at the server.
//   - Smooth motion at any frame rate: package interpolation. What a client showed when its player acted: package
//     rewind.
//   - Clients that come and go: [Server.OnConnect], [Server.OnDisconnect], [Server.Peers], [Peer.SetData],
//     [Peer.Disconnect], [Client.Status], [Client.Reconnect], [WithTimeout]; who may join: [Server.OnJoin],
//     [WithJoinData].
//   - What a peer may see: [Peer.SetInterest] with a [Grid] from [Server.NewGrid], an [EntitySet] from
//     [Server.NewEntitySet] or a filter, [Peer.LookFrom], [Server.SetOwner]; what must change together: [Group], from
//     [Server.NewGroup].
//   - What a peer is sent, and when: [Peer.SetBudget], [Peer.SetBudgetRange], [Peer.SetSendInterval], [Priority],
//     [Server.SetPriority], [Peer.SetPriorityFunc], [WithCoding].
//   - What happened, and faults: [Server.Stats], [Peer.Stats], [Client.Stats], [Client.Verify], [Tuning].
//   - All options: [Option] for both ends, [ServerOption], [ClientOption], [PeerOption], [TypeOption],
//     [ComponentOption], [MessageOption].
//
// The guide in the directory docs has a page on each of these, and the wire format. Package [netsim] simulates bad
// networks for tests.
//
// # Guarantees
//
//   - A replica, the client's copy of a server's entity, always shows one state that the entity had at the server,
//     quantised, of one tick, all components together; and it never goes back to an earlier one. Components under one
//     condition, such as [OwnerOnly], are a state of their own in this respect.
//   - The resources of a world together show one state of one tick, too.
//   - A reference to an entity at the server is a reference to its replica at the client, or the zero entity while the
//     client has none.
//   - When changes stop and packets get through, the client's state becomes equal to the server's, code for code.
//   - A message is delivered once, in order, and not before the world is as it was when the message was sent, unless
//     its type has options that change this.
//   - A lost state packet costs nothing but time: later packets refer to what the client has acknowledged.
//   - A client whose server fell silent, restarted or timed it out reconnects by itself; one that was disconnected for
//     another reason does not. See [Client.Status].
//   - No packet of the server is larger than its MTU, see [WithMTU], and each can be decoded without those before it.
//   - Nothing from the wire panics, loops or allocates without bound. Receive returns an error and the connection
//     continues.
//   - Misuse, such as a component that can't be replicated, panics with a sentence on how to fix it.
//
// Packets are neither encrypted nor authenticated. The methods of a Server and its Peers belong to one goroutine, those
// of a Client to one as well.
//
// # Misuse
//
// Misuse panics with a text that begins with "replication: ". The rules are the same everywhere:
//
//   - nil is refused wherever a world, schema, server, client, peer, function, filter, set or option is needed. Where
//     it means something, as for [OnClientMessage] and [Server.SetOwner], the documentation explains what.
//   - A [Server], [Client], [Peer], [EntitySet], [Group] or world that is zero is refused like nil. A zero [Schema] is
//     an empty one.
//   - A server with its peers, sets and groups is for one goroutine at a time, and so is a client. A call that comes
//     while another goroutine is in one panics and names both calls. Few mistakes of that kind escape, but some do: use
//     Go's race detector as well. Hooks, message handlers and functions of an [Interest] run on the goroutine of the
//     call that they run in, and may make calls of their own, unless their documentation forbids it.
//   - Any entity handle may be passed. A handle of a removed entity, or from before a reset of the world, refers to
//     nothing; where an entity is needed, as for [Server.SetOwner] and [Expect], it is refused. If the world has reused
//     the handle, it refers to the new entity.
//   - Methods may still be called after the end, since a game may notice it later. After [Server.Close],
//     [Client.Close], [Client.Detach], [Client.Disconnect] and [Peer.Disconnect], getters return the last values,
//     sends return [ErrNotConnected], Receive returns [ErrUnexpected], [Client.Frame] returns the reason, and
//     everything else has no effect. Only [Server.Connect], [Server.Replicate] and [Client.Reconnect] panic after a
//     Close. A closed client delivers no more messages.
//   - The functions that Replicate calls for a peer, those of an [Interest], of [OnlyFor] and of
//     [Peer.SetPriorityFunc], must not end connections or receive packets: calls that may do so panic in them.
//
// [netsim]: https://pkg.go.dev/github.com/arche-replicate/arche-replicate/replication/netsim
package replication
