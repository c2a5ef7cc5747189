package replication

import "github.com/arche-replicate/arche-replicate/bitbuf"

// An inputReport is what a server tells a client from time to time: which of its packets came last, for the round trip, and how
// its inputs fare.
//
//	1 | echo 16 | held | if there are inputs: gathered, late 8, and 0 or 1 | margin | back 8
//
// The tick that the margin is of is the packet's plus inputTicks minus back.
type inputReport struct {
	present  bool
	echo     uint16 // low bits of the newest time of a packet that came from the client
	held     uint32 // ticks since it came
	gathered uint32 // for so many ticks after the packet's, in a row, the inputs are there
	late     uint8  // low bits of how many inputs were not there in time
	judged   bool   // the following is valid
	margin   int32  // the least one of the latest inputs: how many ticks more it could have taken
	back     uint8  // tells which of them
}

const (
	heldOrder     = 0 // of the exp-Golomb codes
	gatheredOrder = 2
	marginOrder   = 2
	maxHeldTicks  = 1 << 10
)

func (p *inputReport) write(w *bitbuf.Writer, inputs bool) {
	w.WriteBool(p.present)
	if !p.present {
		return
	}
	w.WriteBits(uint64(p.echo), 16)
	w.WriteExpGolomb(uint64(p.held), heldOrder)
	if !inputs {
		return
	}
	w.WriteExpGolomb(uint64(p.gathered), gatheredOrder)
	w.WriteBits(uint64(p.late), 8)
	w.WriteBool(p.judged)
	if p.judged {
		w.WriteExpGolomb(uint64(uint32(p.margin<<1^p.margin>>31)), marginOrder)
		w.WriteBits(uint64(p.back), 8)
	}
}

func (p *inputReport) read(r *bitbuf.Reader, inputs bool) {
	if p.present = r.ReadBool(); !p.present {
		return
	}
	p.echo = uint16(r.ReadBits(16))
	p.held = uint32(min(r.ReadExpGolomb(heldOrder), maxHeldTicks))
	if !inputs {
		return
	}
	p.gathered = uint32(min(r.ReadExpGolomb(gatheredOrder), inputTicks))
	p.late = uint8(r.ReadBits(8))
	if p.judged = r.ReadBool(); p.judged {
		m := uint32(min(r.ReadExpGolomb(marginOrder), 2*inputTicks))
		p.margin = int32(m>>1) ^ -int32(m&1)
		p.back = uint8(r.ReadBits(8))
	}
}
