package replication

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
	// maxTalkPackets is how many packets of messages go out in a tick: a sender paces itself.
	maxTalkPackets = 16
	// maxPacketMessages bounds what a packet can make its receiver do.
	maxPacketMessages = 256
	// maxDependencies is how many slots a message may wait for. With more, it is not sent yet.
	maxDependencies = 64
	// maxMessageAge bounds the age that a message is said to have, in ticks.
	maxMessageAge = 1<<12 - 1

	ageOrder        = 1 // of the exp-Golomb codes of ages of messages,
	dependencyOrder = 3 // gaps of the slots that messages wait for
	waitOrder       = 2 // and how many ticks ago they changed

)

// A dependency is a state that a message waits for: one of the slot, of that tick or later.
type dependency struct {
	slot uint32
	tick delta.Tick
}

// A wireMessage is a message as it is put into a packet.
type wireMessage struct {
	number   int
	lane     int // -1: none, it is unreliable
	id       uint32
	long     bool // its type is
	fragment wire.Fragment
	tick     delta.Tick
	waits    bool
	deps     []dependency
	data     []byte // its row, or some of it
	bits     int
}

// A talkWriter fills packets of messages, one after the other.
type talkWriter struct {
	numberBits uint
	down       bool // from the server
	buf        []byte
	header     wire.MessageHeader
	seal       wire.Key
	index      int // of the next packet of this time

	w     bitbuf.Writer
	open  bool
	body  int  // where the bits begin in buf
	count int  // messages in the packet
	bare  bool // it is for nothing but messages
	laneContext
}

// laneContext is what messages of a packet share with those before them.
type laneContext struct {
	begun [wire.Channels]bool
	last  [wire.Channels]uint32 // ids
	deps  []dependency
}

// begin starts a tick. long says whether the receiver may have no time near to this one.
func (k *talkWriter) begin(s wire.Key, time uint32, long bool) {
	k.header, k.seal = wire.MessageHeader{Kind: wire.KindMessages, Time: time, Long: long, Epoch: s.Epoch}, s
	k.index, k.open = 0, false
}

// full reports whether no more packets may be begun.
func (k *talkWriter) full() bool { return k.index == maxTalkPackets }

// start opens a packet.
func (k *talkWriter) start() {
	from := k.seal.Size()
	k.header.Put(k.buf[from:])
	k.body = from + k.header.Size()
	k.w.Reset(k.buf[k.body:])
	k.w.WriteExpGolomb(uint64(k.index), 0)
	k.open, k.count, k.laneContext = true, 0, laneContext{deps: k.deps[:0]}
}

// put appends a message, and returns false if there is no room for it.
func (k *talkWriter) put(m *wireMessage) bool {
	if k.count == maxPacketMessages {
		return false
	}
	mark := k.w.Mark()
	k.w.WriteBool(true)
	k.w.WriteBits(uint64(m.number), k.numberBits)
	if m.lane >= 0 {
		if k.begun[m.lane] {
			k.w.WriteExpGolomb(uint64(m.id-k.last[m.lane]-1), 0)
		} else {
			k.w.WriteBits(uint64(m.id), 16)
		}
		if m.long {
			m.fragment.Write(&k.w)
		}
		if k.down && m.fragment != wire.MoreFragments {
			k.w.WriteExpGolomb(uint64(min(delta.Tick(k.header.Time)-m.tick, maxMessageAge)), ageOrder)
		}
	}
	same := true
	if k.down && m.waits && m.fragment != wire.MoreFragments {
		same = equalDependencies(m.deps, k.deps)
		k.w.WriteBool(!same)
		if !same {
			k.putDependencies(m.deps)
		}
	}
	if m.fragment != wire.WholeMessage {
		k.w.WriteBits(uint64(len(m.data)), fragmentSizeBits)
	}
	k.w.WriteRun(m.data, m.bits)
	if k.w.Err() != nil || k.w.Remaining() == 0 { // a bit ends the messages
		k.w.Rollback(mark)
		return false
	}
	if m.lane >= 0 {
		k.begun[m.lane], k.last[m.lane] = true, m.id
	}
	if !same {
		k.deps = append(k.deps[:0], m.deps...)
	}
	k.count++
	return true
}

func (k *talkWriter) putDependencies(deps []dependency) {
	k.w.WriteExpGolomb(uint64(len(deps)), 0)
	next := uint32(0)
	for _, d := range deps {
		k.w.WriteExpGolomb(uint64(d.slot-next), dependencyOrder)
		k.w.WriteExpGolomb(uint64(delta.Tick(k.header.Time)-d.tick), waitOrder)
		next = d.slot + 1
	}
}

func equalDependencies(a, b []dependency) bool {
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

// finish returns the open packet, which is valid until the next one is begun.
func (k *talkWriter) finish() []byte {
	k.w.WriteBool(false)
	packet := k.buf[:k.body+len(k.w.Bytes())]
	k.seal.Write(packet, 0, k.header.Time)
	k.index++
	k.open = false
	return packet
}
