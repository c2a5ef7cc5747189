package message

import (
	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// Packets of messages and of inputs begin alike:
//
//	checksum 32 | kind 3, tag 3, long 1, 0 | time 16 or 32 | bits...
//
// The tag is 0 where there is a checksum. Else it tells what is late of a former session. The time is the sender's: the
// server's tick, or how often the client's Apply was called before. The bits of a packet of messages are
//
//	index | report | acks | messages ... | 0
//
// where a message may be a fragment of one, see fragments.go.
//
// Index tells apart the packets of one time, so that none is taken twice. Only servers write a report.

const (
	// MaxMessagePackets is how many packets of messages go out in a tick: a sender paces itself.
	MaxMessagePackets = 16
	// MaxPacketMessages bounds what a packet can make its receiver do.
	MaxPacketMessages = 256
	// maxDependencies is how many slots a message may wait for. With more, it is not sent yet.
	maxDependencies = 64
	// MaxMessageAge bounds the age that a message is said to have, in ticks.
	MaxMessageAge = 1<<12 - 1

	AgeOrder        = 1 // of the exp-Golomb codes of ages of messages,
	DependencyOrder = 3 // gaps of the slots that messages wait for
	WaitOrder       = 2 // and how many ticks ago they changed

)

// A WireMessage is a message as it is put into a packet.
type WireMessage struct {
	Number   int
	Channel  int // -1: none, it is unreliable
	ID       uint32
	Long     bool // its type is
	Fragment wire.Fragment
	Tick     delta.Tick
	Waits    bool
	Deps     []wire.Dependency
	Data     []byte // its row, or some of it
	Bits     int
}

// A Writer fills packets of messages, one after the other.
type Writer struct {
	numberBits uint
	down       bool // from the server
	buf        []byte
	header     wire.MessageHeader
	key        wire.Key
	Index      int // of the next packet of this time

	W     bitbuf.Writer
	open  bool
	body  int  // where the bits begin in buf
	count int  // messages in the packet
	bare  bool // it is for nothing but messages
	channelContext
}

// channelContext is what messages of a packet share with those before them.
type channelContext struct {
	begun [wire.Channels]bool
	last  [wire.Channels]uint32 // ids
	deps  []wire.Dependency
}

// Begin starts a tick. long says whether the receiver may have no time near to this one.
func (k *Writer) Begin(s wire.Key, time uint32, long bool) {
	k.header, k.key = wire.MessageHeader{Kind: wire.KindMessages, Time: time, Long: long, Epoch: s.Epoch}, s
	k.Index, k.open = 0, false
}

// full reports whether no more packets may be begun.
func (k *Writer) full() bool { return k.Index == MaxMessagePackets }

// Start opens a packet.
func (k *Writer) Start() {
	from := k.key.Size()
	k.header.Put(k.buf[from:])
	k.body = from + k.header.Size()
	k.W.Reset(k.buf[k.body:])
	k.W.WriteExpGolomb(uint64(k.Index), 0)
	k.open, k.count, k.channelContext = true, 0, channelContext{deps: k.deps[:0]}
}

// Put appends a message, and returns false if there is no room for it.
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
		same = equalDependencies(m.Deps, k.deps)
		k.W.WriteBool(!same)
		if !same {
			k.putDependencies(m.Deps)
		}
	}
	if m.Fragment != wire.Unfragmented {
		k.W.WriteBits(uint64(len(m.Data)), FragmentSizeBits)
	}
	k.W.WriteRun(m.Data, m.Bits)
	if k.W.Err() != nil || k.W.Remaining() == 0 { // a bit ends the messages
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

func (k *Writer) putDependencies(deps []wire.Dependency) {
	k.W.WriteExpGolomb(uint64(len(deps)), 0)
	next := uint32(0)
	for _, d := range deps {
		k.W.WriteExpGolomb(uint64(d.Slot-next), DependencyOrder)
		k.W.WriteExpGolomb(uint64(delta.Tick(k.header.Time)-d.Tick), WaitOrder)
		next = d.Slot + 1
	}
}

func equalDependencies(a, b []wire.Dependency) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// Finish returns the open packet, which is valid until the next one is begun.
func (k *Writer) Finish() []byte {
	k.W.WriteBool(false)
	packet := k.buf[:k.body+len(k.W.Bytes())]
	k.key.Write(packet, 0, k.header.Time)
	k.Index++
	k.open = false
	return packet
}
