package wire

import "github.com/arche-replicate/arche-replicate/bitbuf"

// A ChannelAck tells which reliable messages came: all before next were handed over, bit i of the words is message next+i. It
// knows of packets up to those of the time heard.
type ChannelAck struct {
	Present  bool
	Received uint16
	Next     uint16
	Count    int // words
	Words    [MaxQueued / 32]uint32
}

// Has reports whether bit i is set.
func (a *ChannelAck) Has(i uint32) bool {
	return int(i/32) < a.Count && a.Words[i/32]>>(i%32)&1 != 0
}

// Write appends the ack, or that there is none.
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

// Read is the inverse of write.
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

// MaxQueued is how many reliable messages of a channel await their acknowledgement at a time, and how far ahead of the next
// one its receiver keeps them.
const MaxQueued = 1024

const (
	ChannelState     = iota // of messages that wait for the state of their tick, and of all from clients
	ChannelImmediate        // of messages from the server that don't
	Channels
)
