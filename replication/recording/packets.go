package recording

import (
	"time"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// A Packet is what the client read in a packet of a recording, see [Player.OnPacket].
type Packet struct {
	At    time.Duration // of the tick or frame in which it was recorded, since the beginning
	Kind  string        // "welcome", "state", "messages", "hashes", "disconnect", or "unknown"
	Bytes int
	Err   error // why the client did not take it; the parts before the error are there
	// Tick and Sequence are those of a state packet; a message packet has the tick in which it was sent.
	Tick     replication.Tick
	Sequence uint32
	Compact  bool // its bits are fractions: the costs of Compact
	Parts    []PacketPart
}

// A PacketPart is a part of a packet. The Bits of all parts together are those of the packet.
type PacketPart struct {
	// What is the kind of the part.
	//   - Of the packet: "header", "baselines", "model", "slots", "checks", "end".
	//   - The head of an entry: "update", "new", "full", "set", "despawn", "part" of a state larger than a packet,
	//     or "assembled" from parts, whose fields take no bits of this packet. "rows" are those of a server that
	//     codes them in another way, so that the bits of single fields are not known.
	//   - What follows it: "mask", which rows changed and how, and "field".
	//   - Of a message packet: "message", followed by its fields, or "fragment".
	What   string
	Detail string // for people, may be empty
	Bits   float64

	Slot    int                // of the entry, or -1
	Entity  replication.NetID  // the zero NetID for resources
	Tick    replication.Tick   // of its state, or of the message
	Against []replication.Tick // the baselines of an update, the first one first

	// Or the type and field of a message. Field is empty if the component is one number. The component "link" is what
	// connects what not all clients see of an entity with it.
	Component, Field string
	Code, Base       string // of the field; Base is that of the first baseline, empty without one
	Value            any    // of the field, a [replication.NetID] if it refers to an entity; nil if only a codec has it
}

// A packetHook is an *explainer. The interface makes the linker leave that out of programs without OnPacket.
type packetHook interface {
	receive(p *Player, packet []byte)
	welcome(p *Player, packet []byte, m *wire.Welcome)
}
