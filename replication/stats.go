package replication

import (
	"time"

	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
)

// ServerStats are the counters of a server since it was made.
type ServerStats struct {
	// Now.

	Tick     Tick // of the latest Replicate
	Entities int  // replicated now
	Unmarked int  // not replicated, since they lack the marker, though they have components of the schema
	RawBits  int  // of the codes of all these at fixed width
	Peers    int

	// Traffic.

	// Entries counts entities that were put into packets, and Encoded how many had to be encoded for that, a few of
	// which did not fit after all.
	Entries, Encoded uint64
	// SharedPackets counts packets that were copies, with headers of their own, of packets for all peers that had
	// acknowledged the same.
	SharedPackets uint64
	// BaselineAges counts entities that were sent, by the age of their baseline: item 0
	// without a baseline, items 1 to 31 of so many ticks, item 32 older.
	BaselineAges [33]uint64
	// Fields has the bits sent to all peers, and to recorders, by field, in schema order.
	Fields []FieldStats

	// Entities.

	Spawns        uint64 // entities that entered replication
	Despawns      uint64 // entities that left it
	Clamped       uint64 // values out of their field's range, and texts too long for it, at every capture
	CopiedMarkers uint64 // entities found with the marker of another one

	// Refused.

	Timeouts uint64 // peers that were disconnected for silence
	// RefusedSchemas counts hellos with another schema or protocol version, also those that came to peers that are
	// gone. LastRefusal is a sentence about the latest of them: its version, or the few lines of the schema's text in
	// which it differs. Only numbers in it come from the wire.
	RefusedSchemas uint64
	LastRefusal    string
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

// PeerStats are the counters of one peer.
type PeerStats struct {
	// Traffic.

	Packets        uint64 // state packets passed to the send function
	Bytes          uint64 // in them, headers included
	EntityBits     uint64 // in them, without packet headers
	MessagePackets uint64 // packets of messages, and of what belongs to messages and inputs
	MessageBytes   uint64 // in them
	HashBytes      uint64 // in packets of state hashes, not counted in Bytes
	Budget         int    // bytes per second now, see [Peer.SetBudget] and [Peer.SetBudgetRange]; 0: no limit
	// Backlog is about how many bytes the entities take that wait for a budget. It takes Backlog / Budget seconds to
	// send them.
	Backlog       int
	SendErrors    uint64 // packets that the send function refused
	LastSendError error  // why it refused the latest of these; [Peer.Err] has it as well if it ended the connection

	// Time.

	RoundTrip time.Duration // from sending a packet to its acknowledgement, smoothed; 0 before the first one
	Compact   bool          // the coding of the session is Compact

	// Loss.

	Acked        uint64 // packets acknowledged
	Lost         uint64 // packets declared lost
	LargestAcked int    // bytes of the largest state packet that was acknowledged in the last 5 to 10 seconds
	// LostLarge is how often in a row state packets larger than LargestAcked got lost while smaller ones arrived. If it
	// grows beyond 4, the path drops large packets, and the client may never get all of the world: make the server with
	// a smaller [WithMTU], such as LargestAcked.
	LostLarge        uint64
	Duplicates       uint64 // packets of messages that arrived twice, or too late to know
	MissingBaselines uint64 // reports of the client that it lacks a baseline

	// Entities that were sent.

	Updates           uint64 // entities sent as deltas
	FullStates        uint64 // entities sent as full states: new to the peer, or without a usable baseline
	KeyframeFallbacks uint64 // entities sent as full states because a delta would be longer: teleports
	Parts             uint64 // parts of entities too large for a packet
	Despawns          uint64 // despawns sent
	SplitGroups       uint64 // groups, or parts of them, that did not fit into a packet and were sent one by one
	GroupResends      uint64 // entities in flight that were sent once more with their group
	Hashes            uint64 // entities of which state hashes were sent

	// Entities that were not sent, and why, counted one by one in every tick; the components of an entity under one
	// condition count as one more.

	NotVisible uint64 // out of the peer's view
	UpToDate   uint64 // the peer has the newest state
	InFlight   uint64 // the newest state is in flight
	NotItsTurn uint64 // it is not the peer's turn to be sent state, whether or not there is any; or it is joining
	Silent     uint64 // the peer acknowledges nothing, and is sent less and less: see [WithTimeout]
	OverBudget uint64 // there was no room
	Withheld   uint64 // the client has no slot for it: see [WithMaxEntities]
	// NoViewpoint counts ticks in which the peer's [Interest] had a grid, but [Peer.LookFrom] was never called.
	NoViewpoint uint64

	// Messages and inputs.

	Messages          uint64 // sent to the client, each counted once
	MessagesResent    uint64 // times that a reliable one, or a fragment of one, was sent again
	MessagesDropped   uint64 // not sent, for lack of room or because the client is silent
	MessagesReceived  uint64 // from the client, delivered
	MessagesUnhandled uint64 // from the client, that no function handles
	MessagesMalformed uint64 // from the client, in fragments that make no message
	Inputs            uint64 // from the client, that arrived in time
	InputsLate        uint64 // that arrived when their tick was over
	InputsMissed      uint64 // ticks without an input, though the client sends inputs
	InputsEarly       uint64 // refused because their tick is too far ahead

	// Refused.

	Floods         uint64 // packets refused because there were too many in a tick
	RefusedPackets uint64 // packets from the client that were damaged or made no sense
	Overwritten    uint64 // of these, packets that the client's send function kept: see [ErrOverwritten]
	RefusedAcks    uint64 // acks of packets never sent or long forgotten
	RefusedSchemas uint64 // hellos with another schema or protocol version
	RefusedJoins   uint64 // clients that [Server.OnJoin] refused
	// OtherClients counts hellos of a second client, or of somebody who pretends to be one, while the first one goes
	// on. If it grows, give each address, with its port, a peer of its own.
	OtherClients uint64
}

// ClientStats are the counters of a client.
type ClientStats struct {
	// Traffic.

	Packets        uint64 // state packets accepted
	Bytes          uint64 // in them
	Acks           uint64 // acknowledgement packets sent
	MessagePackets uint64 // packets of messages, and of what belongs to them
	MessageBytes   uint64 // in them
	InputPackets   uint64 // packets of inputs sent
	InputBytes     uint64 // in them
	SendErrors     uint64 // packets that the send function refused
	LastSendError  error  // why it refused the latest of these; see also [Client.Err]

	// Time.

	// RoundTrip is the smoothed time from sending a packet to the server's answer; 0 while it is not known. It is
	// measured only if the schema has messages or inputs.
	RoundTrip time.Duration
	// Jitter is by how much packets arrive early or late, on average, and includes the time that they wait for a frame.
	Jitter time.Duration
	// InputDelay is how far [Client.InputTick] is ahead of [Client.ServerTime] when it rises; 0 when it is 0.
	InputDelay time.Duration
	// SendInterval is the number of ticks from one state packet to the next, see [Peer.SetSendInterval]; 0 before the
	// first one.
	SendInterval int
	// Pace is how many ticks the server made in a tick of the client's time, in a recent span of 5 seconds; 0 before
	// the first one. If it is not near 1, the server does not hold its rate, or Frame gets times in another unit.
	Pace       float64
	ClockSteps uint64 // negative times that [Client.Frame] was given: they counted as 0
	Sessions   uint64 // sessions begun
	Compact    bool   // the coding of the session is Compact

	// Loss.

	Duplicates       uint64 // packets that arrived twice or too late to know
	Outdated         uint64 // entities in packets that arrived after newer ones
	MissingBaselines uint64 // packets that needed a state the client does not hold
	MissingModels    uint64 // packets that needed a model of Compact which the client does not hold

	// Entities.

	Spawns, Despawns uint64 // replicas made and removed
	Adopted          uint64 // of those made, local entities that were matched: see [Expect]
	Unconfirmed      uint64 // expected entities that were not matched in time
	// RelationConflicts counts relations that a replica did not get because the user had given it another one.
	RelationConflicts uint64
	HashesCompared    uint64 // entities compared with a state hash
	HashesSkipped     uint64 // state hashes of entities of which the client holds another state, or none
	Diverged          uint64 // of those compared, entities that differed

	// Messages and inputs.

	Messages          uint64 // sent to the server, each counted once
	MessagesResent    uint64 // times that a reliable one, or a fragment of one, was sent again
	MessagesDropped   uint64 // not sent, or not delivered, for lack of room or of the state they wait for
	MessagesReceived  uint64 // from the server, delivered
	MessagesUnhandled uint64 // from the server, that no function handles
	MessagesMalformed uint64 // from the server, in fragments that make no message
	InputsMissed      uint64 // ticks for which the server had no input in time
	InputsRefused     uint64 // given to OnInput, and too large to send

	// Refused.

	RefusedPackets uint64 // packets that were damaged, foreign or made no sense
	Overwritten    uint64 // of these, packets that the server's send function kept: see [ErrOverwritten]
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
