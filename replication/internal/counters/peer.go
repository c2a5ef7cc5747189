// Package counters has the counters that several packages write.
package counters

// PeerCounters are the counters of a peer. What they count says PeerStats, which has the same fields.
type PeerCounters struct {
	Packets    uint64
	Bytes      uint64
	EntityBits uint64
	SendErrors uint64

	Updates           uint64
	FullStates        uint64
	KeyframeFallbacks uint64
	Parts             uint64
	Despawns          uint64
	NotVisible        uint64
	UpToDate          uint64
	InFlight          uint64
	NotItsTurn        uint64
	Silent            uint64
	OverBudget        uint64
	Withheld          uint64

	Budget int

	SplitGroups  uint64
	GroupResends uint64
	Hashes       uint64
	HashBytes    uint64

	Acked            uint64
	Lost             uint64
	MissingBaselines uint64

	Messages          uint64
	MessagesResent    uint64
	MessagesDropped   uint64
	MessagePackets    uint64
	MessageBytes      uint64
	MessagesReceived  uint64
	MessagesUnhandled uint64
	MessagesMalformed uint64

	Inputs       uint64
	InputsLate   uint64
	InputsMissed uint64
	InputsEarly  uint64

	Duplicates     uint64
	Floods         uint64
	RefusedPackets uint64
	RefusedAcks    uint64
	RefusedSchemas uint64
	RefusedJoins   uint64
}

func (s *PeerCounters) Spending() Spending {
	return Spending{int(s.EntityBits), int(s.Updates), int(s.FullStates + s.KeyframeFallbacks), int(s.Despawns)}
}
