package exclusive

// A Call is an exported function or method of package replication that changes a server or a client.
type Call uint8

// The calls by whose they are: a server's, a client's.
const (
	Close Call = iota + 1
	Connect
	GroupAdd
	GroupRemove
	Input
	LookFrom
	NewEntitySet
	NewGrid
	NewGroup
	OnConnect
	OnDrain
	OnDisconnect
	OnJoin
	OnRefuse
	OnClientMessage
	PeerDisconnect
	PeerReceive
	SetData
	SetRemote
	SetPriorityFunc
	Replicate
	SendToClient
	SendToAll
	SendToViewers
	SetAdd
	SetBudget
	SetBudgetRange
	SetInterest
	SetOwner
	SetPriority
	SetRemove
	SetSendInterval
	SortSpawns

	ClientFrame
	ClientClose
	ClientDetach
	ClientDisconnect
	ClientOnDrain
	ClientReceive
	ClientReconnect
	ClientVerify
	Expect
	OnAdd
	OnChange
	OnDespawn
	OnInput
	OnRemove
	OnServerMessage
	OnSpawn
	SendToServer
	SetInput
	SetJoinData
	SetSend

	calls
)

var names = [calls]string{
	Close: "Server.Close", Connect: "Server.Connect", GroupAdd: "Group.Add",
	GroupRemove: "Group.Remove", Input: "Input", LookFrom: "Peer.LookFrom", NewEntitySet: "Server.NewEntitySet",
	NewGrid: "Server.NewGrid", NewGroup: "Server.NewGroup",
	OnConnect: "Server.OnConnect", OnDrain: "Server.OnDrain", OnDisconnect: "Server.OnDisconnect",
	OnJoin: "Server.OnJoin", OnRefuse: "Server.OnRefuse", OnClientMessage: "OnClientMessage",
	PeerDisconnect: "Peer.Disconnect", PeerReceive: "Peer.Receive",
	SetPriorityFunc: "Peer.SetPriorityFunc", SetData: "Peer.SetData", SetRemote: "Peer.SetRemote",
	Replicate: "Server.Replicate", SendToClient: "SendToClient", SendToAll: "SendToAll",
	SendToViewers: "SendToViewers", SetAdd: "EntitySet.Add",
	SetBudget: "Peer.SetBudget", SetBudgetRange: "Peer.SetBudgetRange",
	SetInterest: "Peer.SetInterest", SetOwner: "Server.SetOwner",
	SetPriority: "Server.SetPriority", SetRemove: "EntitySet.Remove", SortSpawns: "Grid.SortSpawns",
	SetSendInterval: "Peer.SetSendInterval",

	ClientFrame: "Client.Frame", ClientClose: "Client.Close",
	ClientDetach:     "Client.Detach",
	ClientOnDrain:    "Client.OnDrain",
	ClientDisconnect: "Client.Disconnect", ClientReceive: "Client.Receive",
	ClientReconnect: "Client.Reconnect", ClientVerify: "Client.Verify",
	Expect: "Expect", OnAdd: "OnAdd", OnChange: "OnChange",
	OnDespawn: "OnDespawn", OnInput: "OnInput", OnRemove: "OnRemove", OnServerMessage: "OnServerMessage",
	OnSpawn:      "OnSpawn",
	SendToServer: "SendToServer", SetInput: "SetInput", SetJoinData: "Client.SetJoinData", SetSend: "Client.SetSend",
}

// String returns the name of the call as a user writes it.
func (c Call) String() string { return names[c] }

// queues reports whether a call of a server changes what it has to send, or ends sessions. It must not be made while
// that is being sent.
func (c Call) queues() bool {
	switch c {
	case Close, PeerDisconnect, SendToAll, SendToClient, SendToViewers:
		return true
	}
	return false
}
