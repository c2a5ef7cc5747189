package wire

import "github.com/arche-replicate/arche-replicate/bitbuf"

// InputReport is the server's report to a client: the newest of its packets, for the round trip, and
// how early its inputs arrive.
//
//	1 | echo 16 | held | if there are inputs: gathered, late 8, and 0 or 1 | margin | back 8, and 0 or 1 | misses 32
//
// The margin is that of the input of the packet's tick plus InputTicks minus back.
type InputReport struct {
	Present  bool
	Echo     uint16 // low bits of the newest time of a packet from the client
	Held     uint32 // ticks since that packet arrived
	Gathered uint32 // number of consecutive ticks after the packet's whose inputs have arrived
	Late     uint8  // low bits of the number of inputs that were late
	Judged   bool   // Margin and Back are valid
	Margin   int32  // the smallest of the latest inputs: ticks by which it was early
	Back     uint8  // selects that input
	Misses   uint32 // bit i: i ticks before the packet's, the server had no input in time
}

const (
	heldOrder     = 0 // order of the exp-Golomb code of Held, and so on
	gatheredOrder = 2
	marginOrder   = 2
	MaxHeldTicks  = 1 << 10
)

// Write appends the report. inputs reports whether the schema has an input.
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
	w.WriteBool(p.Misses != 0)
	if p.Misses != 0 {
		w.WriteBits(uint64(p.Misses), 32)
	}
}

// Read reads what Write wrote.
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
	if r.ReadBool() {
		if p.Misses = uint32(r.ReadBits(32)); p.Misses == 0 {
			r.Fail(ErrMalformed)
		}
	}
}

// InputTicks is the number of ticks whose inputs the server keeps, message.InputsBehind of them past.
const InputTicks = 128
