package delta

import (
	"math/big"
	"math/bits"
	"slices"
	"strings"

	"github.com/arche-replicate/arche-replicate/bitbuf"
)

// slowChanged writes whether a field changed, unless it is clear, and reports whether it
// did not.
func slowChanged(w *bitbuf.Writer, last, same, changed bool) bool {
	if !(last && same) {
		w.WriteBool(changed)
	}
	return !changed
}

func slowJump(w *bitbuf.Writer, f *Field, code, from uint64) {
	if f.Bits == 1 {
		return
	}
	if f.Kind == Counter {
		grown := new(big.Int).Sub(new(big.Int).SetUint64(code), new(big.Int).SetUint64(from))
		grown.Mod(grown, new(big.Int).Lsh(big.NewInt(1), f.Bits))
		slowResidual(w, grown.Uint64()-1, 0, f.Bits)
		return
	}
	var flips []uint
	for i := range f.Bits {
		if code>>i&1 != from>>i&1 {
			flips = append(flips, i)
		}
	}
	w.WriteBool(len(flips) > 1)
	if len(flips) == 1 {
		w.WriteBits(uint64(flips[0]), uint(bits.Len(f.Bits-1)))
		return
	}
	for i := range f.Bits {
		w.WriteBool(slices.Contains(flips, i))
	}
}

func slowText(w *bitbuf.Writer, text, was string, most int) {
	begin := 0
	for strings.HasPrefix(text, was[:begin]) && begin < len(was) && strings.HasPrefix(text, was[:begin+1]) {
		begin++
	}
	inner, inside := text[begin:], was[begin:]
	end := 0
	for end < len(inside) && strings.HasSuffix(inner, inside[len(inside)-end-1:]) {
		end++
	}
	w.WriteBits(uint64(begin), uint(bits.Len(uint(len(was)))))
	w.WriteBits(uint64(end), uint(bits.Len(uint(len(inside)))))
	inner, inside = inner[:len(inner)-end], inside[:len(inside)-end]
	most -= begin + end
	switch {
	case inside == "":
		w.WriteBits(uint64(len(inner)-1), uint(bits.Len(uint(most-1))))
	case len(inside) == len(inner):
		w.WriteBool(false)
	default:
		w.WriteBool(true)
		w.WriteBits(uint64(len(inner)), uint(bits.Len(uint(most))))
	}
	slowBytes(w, inner)
}

func slowBytes(w *bitbuf.Writer, text string) {
	if text == "" {
		return
	}
	wide := strings.ContainsFunc(text, func(r rune) bool { return r >= 128 }) // or no UTF-8
	w.WriteBool(wide)
	for i := range len(text) {
		for bit := range 8 {
			if bit < 7 || wide {
				w.WriteBool(text[i]>>bit&1 != 0)
			}
		}
	}
}

// slowReferenceCode writes a reference from a table of classes.
func slowReferenceCode(w *bitbuf.Writer, index1, counter uint32, maybeNothing bool) {
	if maybeNothing {
		w.WriteBool(index1 != 0)
	}
	if index1 == 0 {
		return
	}
	first := uint64(0)
	for class, bits := range []uint{7, 10, 13, 16, 19} {
		if beyond := uint64(index1-1) - first; beyond < 1<<bits {
			w.WriteUnary(uint(class), 5)
			w.WriteBits(beyond, bits)
			slowResidual(w, uint64(counter), 3, 16)
			return
		}
		first += 1 << bits
	}
	w.WriteUnary(5, 5)
	w.WriteBits(uint64(index1-1), 30)
	w.WriteBits(uint64(counter), 16)
}
