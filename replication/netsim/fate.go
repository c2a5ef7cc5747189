package netsim

import (
	"math/bits"
	"math/rand/v2"
)

// dice are the random draws of one packet, all taken before any is used: whether a setting is in
// use must not change the draws of the others.
type dice struct {
	loss      uint64
	duplicate uint64
	copies    [2]copyDice
}

// copyDice are the draws of one copy of a packet.
type copyDice struct {
	jitter, reorder, reorderBy, corrupt uint64
}

// roll draws the dice of the packet with the given sequence number. Each packet has its own
// sequence of random numbers, so that its fate does not depend on earlier packets.
func roll(seed, seq uint64) dice {
	var pcg rand.PCG
	pcg.Seed(seed, seq)
	d := dice{loss: pcg.Uint64(), duplicate: pcg.Uint64()}
	for i := range d.copies {
		d.copies[i] = copyDice{pcg.Uint64(), pcg.Uint64(), pcg.Uint64(), pcg.Uint64()}
	}
	return d
}

// delay returns the time that a copy with these dice spends in flight.
func (o *odds) delay(d *copyDice) instant {
	t := o.latency + instant(below(d.jitter, 2*uint64(o.jitter)+1)) - o.jitter
	t = max(t, 0)
	if o.reorder.holds(d.reorder) {
		t += instantOfTick(1 + int64(below(d.reorderBy, uint64(o.reorderBy))))
	}
	return t
}

// below maps a uniform 64-bit draw to 0..n-1 by taking the upper half of the product. The bias is
// below n / 2^64, which no test could detect, and unlike rejection it always takes one draw.
func below(draw, n uint64) uint64 {
	hi, _ := bits.Mul64(draw, n)
	return hi
}
