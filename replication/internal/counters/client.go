package counters

import "time"

// ClientCounters has the counters of a client. replication.ClientStats has the same fields and
// describes them.
type ClientCounters struct {
	Packets        uint64
	Bytes          uint64
	Acks           uint64
	MessagePackets uint64
	MessageBytes   uint64
	InputPackets   uint64
	InputBytes     uint64
	SendErrors     uint64
	LastSendError  error

	RoundTrip    time.Duration
	Jitter       time.Duration
	InputDelay   time.Duration
	SendInterval int
	Pace         float64
	ClockSteps   uint64
	Sessions     uint64
	Compact      bool

	Duplicates       uint64
	Outdated         uint64
	MissingBaselines uint64
	MissingModels    uint64

	Spawns, Despawns  uint64
	Adopted           uint64
	Unconfirmed       uint64
	RelationConflicts uint64
	HashesCompared    uint64
	HashesSkipped     uint64
	Diverged          uint64

	Messages          uint64
	MessagesResent    uint64
	MessagesDropped   uint64
	MessagesReceived  uint64
	MessagesUnhandled uint64
	MessagesMalformed uint64
	InputsMissed      uint64
	InputsRefused     uint64

	RefusedPackets uint64
	Overwritten    uint64
}
