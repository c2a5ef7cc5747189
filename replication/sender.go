package replication

import (
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// sender is what is sent to a peer in a tick.
type sender struct {
	snap     *snapshot
	opts     *serverOptions
	interest *interestSets
	sight    *sight
	acked    *tracker
	stats    *peerCounters

	send    func(packet []byte) error
	seal    wire.Key // of packets to the client
	compact bool     // the coding is Compact

	relays  bool  // packets of a stream may be all that is to be sent in the present tick
	speaks  bool  // there are new messages for the peer
	rests   bool  // it needs nothing in the present tick
	crowded uint8 // for so many ticks it is not tried to send all in one packet
	planned plan
	inOrder bool // all that is due is to be sent, in the order of slots
	sending bool // what is due is being sent, or was when a send function panicked

	stream  int32 // of the worker's streams, in the present tick; -1 for none
	resume  int   // the slot to begin with: where the last tick had to stop
	behind  int   // the same for what is in groups
	yields  bool  // what is in groups took all the room, so that the rest goes first
	runs    *worker
	outbox  outbox
	alive   keepAlive
	hashing hashing
	budget  budget
	weigh   func([]ecs.Entity, []float32)
	typical int        // bits of an update with all that belongs to it, about, in 1/16
	cost    prices     // of entries, in the present tick
	usage   usage      // of a budget
	urgency urgency    // of what is due, if there is a budget
	met     bitset.Set // slots of which the peer knows, if there is a budget
	packet  packetWriter
	counted uint64 // entities sent in ticks that are accounted for
}
