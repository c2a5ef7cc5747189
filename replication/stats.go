package replication

import "github.com/arche-replicate/arche-replicate/replication/internal/schema"

// ServerStats is what a server has done since it was made.
type ServerStats struct {
	Tick     uint32 // of the latest Replicate
	Entities int    // replicated now
	RawBits  int    // of the codes of all these at fixed width
	Peers    int

	Timeouts      uint64 // peers that were disconnected for their silence
	Spawns        uint64 // entities that entered replication
	Despawns      uint64 // entities that left it
	Clamped       uint64 // values out of their field's range, and texts too long for it, at every capture
	CopiedMarkers uint64 // entities found with the marker of another one

	// Entries is how many entities were put into packets, and Encoded how many of them
	// had to be encoded for that: what one peer needs most others need as well.
	Entries, Encoded uint64

	// SharedPackets is how many packets were copies, under headers of their own, of
	// packets for all peers that had acknowledged the same, though that may be a single one.
	SharedPackets uint64

	// BaselineAges has how many entities were sent against a baseline of an age: item 0
	// without any, items 1 to 31 of so many ticks, item 32 older.
	BaselineAges [33]uint64

	// Fields has the bits sent to all peers by field, in schema order.
	Fields []FieldStats
}

// FieldStats is what one field of one component has cost.
type FieldStats struct {
	Component string
	Field     string // "" for the bits that name which components changed
	Bits      uint64
}

// Name returns the component and field, "Position.X".
func (f *FieldStats) Name() string {
	if f == nil {
		return ""
	}
	if f.Field == "" {
		return f.Component
	}
	return f.Component + "." + f.Field
}

// PeerStats is what went to and came from one peer.
type PeerStats struct {
	Packets    uint64 // state packets sent
	Bytes      uint64 // in them, headers included
	EntityBits uint64 // in them, without packet headers
	SendErrors uint64 // packets that the send function refused

	Updates           uint64 // entities sent as deltas
	FullStates        uint64 // entities sent as full states: new to the peer, or without a usable baseline
	KeyframeFallbacks uint64 // the same because a delta would be longer: teleports
	Parts             uint64 // parts of entities too large for a packet
	Despawns          uint64 // despawns sent

	// Why entities were not sent, counted entity by entity in every tick; what an entity has
	// under one condition counts as one more.
	NotVisible uint64 // out of the peer's view
	UpToDate   uint64 // the peer has the newest state
	InFlight   uint64 // the newest state is on its way
	NotItsTurn uint64 // it is not the peer's turn to be sent anything, whether there is anything new or not
	Silent     uint64 // the peer acknowledges nothing, and is sent less and less: see [WithTimeout]
	OverBudget uint64 // there was no room
	Withheld   uint64 // the client has no slot for it: see [WithMaxEntities]

	Budget int // bytes per second now, see [Peer.SetBudget] and [Peer.SetBudgetRange]; 0: no limit

	SplitGroups  uint64 // groups, or parts of them, that were more than a packet and sent one by one
	GroupResends uint64 // entities that were on their way and were sent once more with their group
	Hashes       uint64 // entities of which state hashes were sent
	HashBytes    uint64 // in packets of their own, not counted in Bytes

	Acked            uint64 // packets acknowledged
	Lost             uint64 // packets taken for lost
	MissingBaselines uint64 // reports of the client that it lacks a baseline

	Messages          uint64 // handed to this peer for its client, each counted once
	MessagesResent    uint64 // times that a reliable one, or a fragment of one, was sent again
	MessagesDropped   uint64 // not sent, for want of room or since the client is silent
	MessagePackets    uint64 // packets of messages, and of what belongs to messages and inputs
	MessageBytes      uint64 // in them
	MessagesReceived  uint64 // of the client that were handed over
	MessagesUnhandled uint64 // of the client that no function takes
	MessagesMalformed uint64 // of the client that came in fragments which make no message

	Inputs       uint64 // of the client that came in time
	InputsLate   uint64 // that came when their tick was over
	InputsMissed uint64 // ticks without input, though others came
	InputsEarly  uint64 // refused, since their tick is too far off

	Duplicates     uint64 // packets of messages that came twice, or too late to know
	Floods         uint64 // packets refused because there were too many in a tick
	RefusedPackets uint64 // packets from the client that were damaged or made no sense
	RefusedAcks    uint64 // acks of packets never sent or long forgotten
	RefusedSchemas uint64 // introductions with another schema or protocol version
	RefusedJoins   uint64 // clients that [Server.OnJoin] refused
}

// ClientStats is what came to and went from a client.
type ClientStats struct {
	Packets uint64 // state packets accepted
	Bytes   uint64 // in them

	Duplicates       uint64 // packets that came twice or too late to know
	RefusedPackets   uint64 // packets that were damaged, foreign or made no sense
	MissingBaselines uint64 // packets that needed a state the client does not hold
	MissingModels    uint64 // packets that needed a model of Compact which the client does not hold
	Outdated         uint64 // entities in packets that came after newer ones
	SendErrors       uint64 // packets that the send function refused

	Spawns, Despawns uint64 // mirrored entities made and removed
	Adopted          uint64 // of these made, local entities that were expected
	Unconfirmed      uint64 // expected entities that the server's never came for
	Sessions         uint64 // sessions begun

	// RelationConflicts counts relations that a mirrored entity did not get, since the user
	// had given it another one: Arche allows an entity one.
	RelationConflicts uint64

	HashesCompared uint64 // entities that a state hash was compared with
	HashesSkipped  uint64 // state hashes of entities that another state is held of, or none
	Diverged       uint64 // of those compared, entities that were not what they should be

	Acks uint64 // acknowledgement packets sent

	Messages          uint64 // sent to the server, each counted once
	MessagesResent    uint64 // times that a reliable one, or a fragment of one, was sent again
	MessagesDropped   uint64 // not sent, or not handed over, for want of room or of the state they wait for
	MessagePackets    uint64 // packets of messages, and of what belongs to them
	MessageBytes      uint64 // in them
	MessagesReceived  uint64 // of the server that were handed over
	MessagesUnhandled uint64 // of the server that no function takes
	MessagesMalformed uint64 // of the server that came in fragments which make no message

	InputPackets uint64 // packets of inputs sent
	InputBytes   uint64 // in them
	InputsMissed uint64 // ticks for which the server had no input in time
}

// fieldStats returns the statistics of a schema's fields, in the order of
// encode.Cache.FieldBits.
func fieldStats(s *schema.Schema) []FieldStats {
	var fields []FieldStats
	for i := range s.Components {
		for _, f := range s.Components[i].Layout.Fields {
			fields = append(fields, FieldStats{Component: s.Components[i].Name, Field: f.Name})
		}
	}
	for i := range s.Components {
		fields = append(fields, FieldStats{Component: s.Components[i].Name})
	}
	return fields
}
