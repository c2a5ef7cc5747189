package sender

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/ackstate"
	"github.com/arche-replicate/arche-replicate/replication/internal/encode"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// An outbox puts headers on packets and sends them. While workers run it queues them, because the
// send function may only be called on the goroutine that calls Replicate.
type outbox struct {
	*peer
	Send  func(packet []byte) error
	key   wire.Key                // of packets to the client
	heads [wire.HeaderForms]uint8 // sizes of everything before the body of a state packet

	direct      bool // Send may be called at once: this is the only peer, so its worker is the caller
	box         *packetBox
	first, last int32    // queued packets in the box; first is -1 for none
	failed      []uint32 // sequences of packets that Send did not take
}

// setKey starts a session with a key of its own.
func (o *outbox) setKey(key wire.Key) {
	o.key, o.failed = key, o.failed[:0]
	for form := range o.heads {
		h := wire.StateHeader{Form: wire.HeaderForm(form), Wide: key.Off}
		o.heads[form] = uint8(key.Size() + h.Size())
	}
	o.narrow = encode.RoomOf(o.snap)+key.Size()+wire.MaxStateHeader > o.opts.MTU
}

// header returns the header of a packet of this tick with the given base tick.
func (o *outbox) header(sequence uint32, form wire.HeaderForm, base delta.Tick) wire.StateHeader {
	return wire.StateHeader{
		Sequence: sequence, Tick: uint32(o.snap.Tick), Interval: uint8(o.acked.Interval), Form: form, Wide: o.key.Off,
		Complete: o.acked.Join.Complete, Settled: o.acked.Certify(sequence, base),
	}
}

// complete writes the header and the checksum of a packet whose body has n bits.
func (o *outbox) complete(packet []byte, h *wire.StateHeader, n int) {
	o.putHeader(packet, h, n)
	o.key.Write(packet, h.Sequence, h.Tick)
}

// putHeader writes the header of a packet whose body has n bits.
func (o *outbox) putHeader(packet []byte, h *wire.StateHeader, n int) {
	at := o.key.Size()
	h.Put(packet[at:])
	packet[at] |= byte(-n&7) << wire.PadShift
}

// copyOf returns a shared packet with a header of the peer's. It is valid until the next packet is begun.
func (o *outbox) copyOf(from *encode.SharedPacket, sequence uint32) []byte {
	form := o.acked.Log.At(sequence).Form
	size := int(o.heads[form])
	packet := o.box.packet[:size+copy(o.box.packet[size:], from.Body)]
	h := o.header(sequence, form, from.Base)
	if o.key.Off || from.Copies == 1 {
		o.complete(packet, &h, from.Bits)
		return packet
	}
	if !from.Summed {
		from.Summed, from.Sum = true, crc32.Checksum(from.Body, wire.Castagnoli)
		from.Shift.Set(len(from.Body))
	}
	o.putHeader(packet, &h, from.Bits)
	begin := o.key.Sum(packet[wire.ChecksumSize:size], h.Sequence, h.Tick)
	binary.LittleEndian.PutUint32(packet, from.Sum^from.Shift.Of(begin))
	return packet
}

// Transmit sends a packet that is not a state packet of the tick. An error is counted.
func (o *outbox) Transmit(packet []byte) {
	if o.Send(packet) != nil {
		o.stats.SendErrors++
	}
}

// put sends a state packet, or queues a copy of it.
func (o *outbox) put(packet []byte, sequence uint32) {
	if o.direct {
		o.deliver(packet, sequence)
		return
	}
	b := o.box
	first := len(b.bytes)
	b.bytes = append(b.bytes, packet...)
	o.queue(queued{first: first, end: len(b.bytes), sequence: sequence})
}

// putCopies sends copies of shared packets, or queues them. The first one has the given sequence.
func (o *outbox) putCopies(from []encode.SharedPacket, sequence uint32) {
	switch {
	case len(from) == 0: // everything that changed is in groups
	case o.direct:
		o.deliverCopies(from, sequence)
	default:
		o.queue(queued{from: from, sequence: sequence})
	}
}

// queue appends a packet to the peer's list in the box.
func (o *outbox) queue(q queued) {
	i := int32(len(o.box.Queued))
	q.next = -1
	o.box.Queued = append(o.box.Queued, q)
	if o.first < 0 {
		o.first = i
	} else {
		o.box.Queued[o.last].next = i
	}
	o.last = i
}

// Flush sends the queued packets. Packets that the send function did not take are lost.
func (o *outbox) Flush() {
	for i := o.first; i >= 0; {
		q := &o.box.Queued[i]
		i = q.next
		if q.from != nil {
			o.deliverCopies(q.from, q.sequence)
		} else {
			o.deliver(o.box.bytes[q.first:q.end:q.end], q.sequence)
		}
	}
	o.first = -1
	o.loseFailed()
}

// loseFailed counts the packets that the send function did not take as lost, if they don't yet: they are those of an
// earlier tick if the send function panicked in it.
func (o *outbox) loseFailed() {
	for _, sequence := range o.failed {
		o.stats.SendErrors++
		if sent := o.acked.Log.Find(sequence); sent != nil && sent.Status == ackstate.SentInFlight {
			o.acked.Lose(sequence)
		}
	}
	o.failed = o.failed[:0]
}

// deliverCopies sends copies of shared packets.
func (o *outbox) deliverCopies(from []encode.SharedPacket, sequence uint32) {
	for i := range from {
		o.deliver(o.copyOf(&from[i], sequence), sequence)
		sequence++
	}
}

// deliver sends a state packet.
func (o *outbox) deliver(packet []byte, sequence uint32) {
	if o.Send(packet) != nil {
		o.failed = append(o.failed, sequence)
	}
}

// A packetBox holds the queued packets of a worker's peers, in the order of filling. Shared ones are not copied.
type packetBox struct {
	packet []byte // that is being written, or copied; for all peers, so that it stays in the fastest cache
	bytes  []byte
	Queued []queued
	most   int // bytes in a tick, since memory was last freed
	list   int // packets in a tick, since then
}

// A queued packet, or several copies of shared ones.
type queued struct {
	first, end int                   // of its bytes
	from       []encode.SharedPacket // to be copied, with consecutive sequences; nil: it is in bytes
	sequence   uint32
	next       int32 // packet of the same peer, -1 for none
}

// empty drops the packets of the last tick. From time to time it frees the memory of a rare burst: only if half of it
// was not needed, since peers move from worker to worker, and their packets with them.
func (b *packetBox) empty(now delta.Tick) {
	b.most, b.list = max(b.most, len(b.bytes)), max(b.list, len(b.Queued))
	b.bytes, b.Queued = b.bytes[:0], b.Queued[:0]
	if now%ackstate.ResizeTicks == 0 {
		if size := b.most + b.most/16; cap(b.bytes) > 2*size {
			b.bytes, b.Queued = make([]byte, 0, size), make([]queued, 0, b.list)
		}
		b.most, b.list = 0, 0
	}
}
