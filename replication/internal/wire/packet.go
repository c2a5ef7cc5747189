// Package wire has the layout of every packet, outside the lists of entries and messages: the function
// that writes a packet is beside the one that parses it. It owns checksums, kinds of packets, header
// fields and the serial arithmetic of their low bits. Values go in and bytes come out, and back. All
// packages that send or receive packets call it.
package wire

// ProtocolVersion is the version of the wire format. Ends with different versions
// refuse each other in the handshake.
const ProtocolVersion = 1

// PacketKind is the kind of a packet, in the low three bits of its first byte after
// the checksum.
type PacketKind uint8

const (
	KindHello   PacketKind = iota // client: asks for a session, with its schema's fingerprint
	KindWelcome                   // server: offers a session
	KindRefuse                    // server: has another schema, and sends a piece of its text
	KindState                     // server: entities
	KindAck                       // client: packets that arrived

	KindMessages PacketKind = 5 // both: messages, their acknowledgements, and the server's report of inputs
	KindInputs   PacketKind = 6 // client: inputs of future ticks
)

// KindDisconnect ends a session, in both directions.
const KindDisconnect PacketKind = 7

// kindSettledState is a state packet that certifies more than one of KindState, see [StateHeader]. It shares
// its number with inputs, which go the other way.
const kindSettledState = KindInputs

const (
	ChecksumSize = 4
	kindBits     = 3
	PadShift     = kindBits      // 3 bits: unused bits of the packet's last byte
	epochShift   = kindBits      // 3 bits, of messages and inputs: the epoch of the session
	KeptBit      = 1 << PadShift // with Compact: the model behind the packet is kept
	LongBit      = 1 << 6        // of messages and inputs: the time has 32 bits, not 16
	completeBit  = 1 << 6        // of state: everything that existed when the session began is acknowledged

	// MinMTU leaves room for a welcome and for parts of a useful size.
	MinMTU = 64
	MaxMTU = 65507
)

// Extend16 completes the low 16 bits of a counter to the value nearest to near.
func Extend16(low uint16, near uint32) uint32 {
	return near + uint32(int32(int16(low-uint16(near))))
}

// Ancient is the age at which ticks are moved forward, so that serial arithmetic keeps distinguishing
// before from after.
const Ancient = 1 << 30
