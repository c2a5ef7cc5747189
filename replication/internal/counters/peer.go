// Package counters owns the counters of one peer and one client. Sender, session, messages and receiver
// increment the same struct; the face copies it into the public statistics.
package counters

import "time"

// PeerCounters has the counters of a peer. replication.PeerStats has the same fields and describes them.
type PeerCounters struct {
	Packets        uint64
	Bytes          uint64
	EntityBits     uint64
	MessagePackets uint64
	MessageBytes   uint64
	HashBytes      uint64
	Budget         int
	Backlog        int
	SendErrors     uint64
	LastSendError  error

	RoundTrip time.Duration
	Compact   bool

	Acked            uint64
	Lost             uint64
	LargestAcked     int
	LostLarge        uint64
	Duplicates       uint64
	MissingBaselines uint64

	Updates           uint64
	FullStates        uint64
	KeyframeFallbacks uint64
	Parts             uint64
	Despawns          uint64
	SplitGroups       uint64
	GroupResends      uint64
	Hashes            uint64

	NotVisible  uint64
	UpToDate    uint64
	InFlight    uint64
	NotItsTurn  uint64
	Silent      uint64
	OverBudget  uint64
	Withheld    uint64
	NoViewpoint uint64

	Messages          uint64
	MessagesResent    uint64
	MessagesDropped   uint64
	MessagesReceived  uint64
	MessagesUnhandled uint64
	MessagesMalformed uint64
	Inputs            uint64
	InputsLate        uint64
	InputsMissed      uint64
	InputsEarly       uint64

	Floods         uint64
	RefusedPackets uint64
	Overwritten    uint64
	RefusedAcks    uint64
	RefusedSchemas uint64
	RefusedJoins   uint64
	OtherClients   uint64
}

// Spending returns the totals of the entries that the peer was sent.
func (s *PeerCounters) Spending() Spending {
	return Spending{
		bits: uint32(s.EntityBits), states: uint32(s.Updates + s.FullStates + s.KeyframeFallbacks),
		full: uint32(s.FullStates), despawns: uint32(s.Despawns),
	}
}
