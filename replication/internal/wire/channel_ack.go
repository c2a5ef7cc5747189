package wire

import "github.com/arche-replicate/arche-replicate/bitbuf"

// ChannelAck acknowledges the reliable messages of a channel: all before Next were handled, and bit i
// of the words is for message Next+i. Received is the newest time of a packet that had arrived.
type ChannelAck struct {
	Present  bool
	Received uint16
	Next     uint16
	Count    int // number of words
	Words    [MaxQueued / 32]uint32
}

// Has reports whether bit i is set.
func (a *ChannelAck) Has(i uint32) bool {
	return int(i/32) < a.Count && a.Words[i/32]>>(i%32)&1 != 0
}

// Write appends the ack, or a bit if there is none.
func (a *ChannelAck) Write(w *bitbuf.Writer) {
	w.WriteBool(a.Present)
	if !a.Present {
		return
	}
	w.WriteBits(uint64(a.Received), 16)
	w.WriteBits(uint64(a.Next), 16)
	w.WriteExpGolomb(uint64(a.Count), 0)
	for _, x := range a.Words[:a.Count] {
		w.WriteBits(uint64(x), 32)
	}
}

// Read reads what Write wrote.
func (a *ChannelAck) Read(r *bitbuf.Reader) error {
	if a.Present = r.ReadBool(); !a.Present {
		return nil
	}
	a.Received, a.Next = uint16(r.ReadBits(16)), uint16(r.ReadBits(16))
	n := r.ReadExpGolomb(0)
	if n > uint64(len(a.Words)) {
		return ErrMalformed
	}
	a.Count = int(n)
	for i := range a.Words[:a.Count] {
		a.Words[i] = uint32(r.ReadBits(32))
	}
	return nil
}

// MaxQueued is the largest number of reliable messages of a channel that wait for their
// acknowledgement, and the distance from the next one up to which a receiver keeps them.
const MaxQueued = 1024

const (
	ChannelState     = iota // messages that wait for the state of their tick, and all from clients
	ChannelImmediate        // messages from the server that don't wait
	Channels
)
