package wire

import "github.com/arche-replicate/arche-replicate/bitbuf"

// An InputReport is what a server tells a client from time to time: which of its packets came last, for the round trip, and how
// its inputs fare.
//
//	1 | echo 16 | held | if there are inputs: gathered, late 8, and 0 or 1 | margin | back 8
//
// The tick that the margin is of is the packet's plus InputTicks minus back.
type InputReport struct {
	Present  bool
	Echo     uint16 // low bits of the newest time of a packet that came from the client
	Held     uint32 // ticks since it came
	Gathered uint32 // for so many ticks after the packet's, in a row, the inputs are there
	Late     uint8  // low bits of how many inputs were not there in time
	Judged   bool   // the following is valid
	Margin   int32  // the least one of the latest inputs: how many ticks more it could have taken
	Back     uint8  // tells which of them
}

const (
	heldOrder     = 0 // of the exp-Golomb codes
	gatheredOrder = 2
	marginOrder   = 2
	MaxHeldTicks  = 1 << 10
)

func (p *InputReport) Write(w *bitbuf.Writer, inputs bool) {
	w.WriteBool(p.Present)
	if !p.Present {
		return
	}
	w.WriteBits(uint64(p.Echo), 16)
	w.WriteExpGolomb(uint64(p.Held), heldOrder)
	if !inputs {
		return
	}
	w.WriteExpGolomb(uint64(p.Gathered), gatheredOrder)
	w.WriteBits(uint64(p.Late), 8)
	w.WriteBool(p.Judged)
	if p.Judged {
		w.WriteExpGolomb(uint64(uint32(p.Margin<<1^p.Margin>>31)), marginOrder)
		w.WriteBits(uint64(p.Back), 8)
	}
}

func (p *InputReport) Read(r *bitbuf.Reader, inputs bool) {
	if p.Present = r.ReadBool(); !p.Present {
		return
	}
	p.Echo = uint16(r.ReadBits(16))
	p.Held = uint32(min(r.ReadExpGolomb(heldOrder), MaxHeldTicks))
	if !inputs {
		return
	}
	p.Gathered = uint32(min(r.ReadExpGolomb(gatheredOrder), InputTicks))
	p.Late = uint8(r.ReadBits(8))
	if p.Judged = r.ReadBool(); p.Judged {
		m := uint32(min(r.ReadExpGolomb(marginOrder), 2*InputTicks))
		p.Margin = int32(m>>1) ^ -int32(m&1)
		p.Back = uint8(r.ReadBits(8))
	}
}

// InputTicks is the size of the server's ring: inputs of so many ticks are kept, message.InputsBehind of them before the present.
const InputTicks = 128
