package message

// This file writes packets of messages. Packets of messages and of inputs begin alike:
//
//	checksum 32 | kind 3, epoch 3, long 1, stamped 1 | time 16 or 32 | bits...
//
// The epoch is 0 in sessions with checksums; in others it marks late packets of a former session. The
// time is the sender's: the server's tick, or the ticks that passed at the client. The bits of a
// packet of messages are
//
//	index | report | acks | messages ... | 0
//
// where a message may be a fragment of one, see fragments.go.
//
// The index distinguishes the packets of one time, so that none is used twice. Only servers write a
// report.

import (
	"slices"

	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

const (
	// MaxMessagePackets is the number of packets of messages that a sender sends in a tick at most.
	MaxMessagePackets = 16
	// MaxPacketMessages bounds the work that a packet can cause.
	MaxPacketMessages = 256
	// maxDependencies is the number of slots for which a message may wait. With more, it is not
	// sent yet.
	maxDependencies = 64
	// MaxMessageAge is the largest age of a message on the wire, in ticks.
	MaxMessageAge = 1<<12 - 1

	AgeOrder        = 1 // order of the exp-Golomb codes of the ages of messages,
	DependencyOrder = 3 // of the gaps between the slots for which messages wait,
	WaitOrder       = 2 // and of the number of ticks since these changed
)

// WireMessage is a message to write into a packet.
type WireMessage struct {
	Number   int
	Channel  int // -1 for unreliable messages
	ID       uint32
	Long     bool // messages of the type may be fragmented
	Fragment wire.Fragment
	Tick     delta.Tick
	Waits    bool
	Deps     []wire.Dependency
	Data     []byte // its row, or a fragment of it
	Bits     int
}

// Writer fills packets of messages, one after the other.
type Writer struct {
	numberBits uint
	down       bool // packets go to clients
	buf        []byte
	header     wire.MessageHeader
	key        wire.Key
	mtu        int
	Index      int // of the next packet of this time

	W            bitbuf.Writer
	open         bool
	body         int  // start of the bits in buf
	count        int  // messages in the packet
	onlyMessages bool // the packet has neither a report nor an ack
	channelContext
}

// channelContext is the state that messages of a packet share with those before them.
type channelContext struct {
	begun [wire.Channels]bool
	last  [wire.Channels]uint32 // ids
	deps  []wire.Dependency
}

// Begin starts a tick, whose packets have at most mtu bytes. long reports whether the receiver may have no time near to
// this one.
func (k *Writer) Begin(s wire.Key, time uint32, long bool, mtu int) {
	if k.mtu = mtu; mtu > len(k.buf) {
		k.buf = make([]byte, mtu)
	}
	k.header, k.key = wire.MessageHeader{Kind: wire.KindMessages, Time: time, Long: long, Epoch: s.Epoch}, s
	k.Index, k.open = 0, false
}

// full reports whether the tick has no packet left.
func (k *Writer) full() bool { return k.Index == MaxMessagePackets }

// Start opens a packet.
func (k *Writer) Start() {
	from := k.key.Size()
	k.header.Put(k.buf[from:])
	k.body = from + k.header.Size()
	k.W.Reset(k.buf[k.body:k.mtu])
	k.W.WriteExpGolomb(uint64(k.Index), 0)
	k.open, k.count, k.channelContext = true, 0, channelContext{deps: k.deps[:0]}
}

// Put appends a message. It returns false if there is no room for it.
func (k *Writer) Put(m *WireMessage) bool {
	if k.count == MaxPacketMessages {
		return false
	}
	mark := k.W.Mark()
	k.W.WriteBool(true)
	k.W.WriteBits(uint64(m.Number), k.numberBits)
	if m.Channel >= 0 {
		if k.begun[m.Channel] {
			k.W.WriteExpGolomb(uint64(m.ID-k.last[m.Channel]-1), 0)
		} else {
			k.W.WriteBits(uint64(m.ID), 16)
		}
		if m.Long {
			m.Fragment.Write(&k.W)
		}
		if k.down && m.Fragment != wire.MoreFragments {
			k.W.WriteExpGolomb(uint64(min(delta.Tick(k.header.Time)-m.Tick, MaxMessageAge)), AgeOrder)
		}
	}
	same := true
	if k.down && m.Waits && m.Fragment != wire.MoreFragments {
		same = slices.Equal(m.Deps, k.deps)
		k.W.WriteBool(!same)
		if !same {
			k.putDependencies(m.Deps)
		}
	}
	if m.Fragment != wire.Unfragmented {
		k.W.WriteBits(uint64(len(m.Data)), FragmentSizeBits)
	}
	k.W.WriteRun(m.Data, m.Bits)
	if k.W.Err() != nil || k.W.Remaining() == 0 { // a bit must remain for the end of the messages
		k.W.Rollback(mark)
		return false
	}
	if m.Channel >= 0 {
		k.begun[m.Channel], k.last[m.Channel] = true, m.ID
	}
	if !same {
		k.deps = append(k.deps[:0], m.Deps...)
	}
	k.count++
	return true
}

// putDependencies writes the dependencies of a message, by slot.
func (k *Writer) putDependencies(deps []wire.Dependency) {
	k.W.WriteExpGolomb(uint64(len(deps)), 0)
	next := uint32(0)
	for _, d := range deps {
		k.W.WriteExpGolomb(uint64(d.Slot-next), DependencyOrder)
		k.W.WriteExpGolomb(uint64(delta.Tick(k.header.Time)-d.Tick), WaitOrder)
		next = d.Slot + 1
	}
}

// Finish returns the open packet, which is valid until the next one is started.
func (k *Writer) Finish() []byte {
	k.W.WriteBool(false)
	packet := k.buf[:k.body+len(k.W.Bytes())]
	k.key.Write(packet, 0, k.header.Time)
	k.Index++
	k.open = false
	return packet
}
