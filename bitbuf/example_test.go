package bitbuf_test

import (
	"fmt"

	"github.com/arche-replicate/arche-replicate/bitbuf"
)

// An entity of 18 bits: its health, its ammunition and two flags.
func Example() {
	w := bitbuf.NewWriter(make([]byte, 1200))
	w.WriteBits(100, bitbuf.Width(100)) // 0..100 takes 7 bits
	w.WriteBits(300, bitbuf.Width(500)) // 0..500 takes 9
	w.WriteBool(true)
	w.WriteBool(false)
	fmt.Println(w.Len(), "bits,", len(w.Bytes()), "bytes,", w.Err())

	r := bitbuf.NewReader(w.Bytes())
	health, ammo := r.ReadBits(bitbuf.Width(100)), r.ReadBits(bitbuf.Width(500))
	alive, jumping := r.ReadBool(), r.ReadBool()
	fmt.Println(health, ammo, alive, jumping, r.Finish())
	// Output:
	// 18 bits, 3 bytes, <nil>
	// 100 300 true false <nil>
}

// Whatever does not fit is taken back, an overflow included.
func ExampleWriter_Rollback() {
	w := bitbuf.NewWriter(make([]byte, 6))
	written := 0
	for entity := range uint64(10) {
		m := w.Mark()
		w.WriteBits(entity, 10)
		w.WriteUvarint(entity)
		if w.Err() != nil {
			w.Rollback(m)
			break
		}
		written++
	}
	fmt.Println(written, "entities in", w.Len(), "bits,", w.Err())
	// Output: 2 entities in 36 bits, <nil>
}

// A run that is encoded once goes into many packets, at any bit position.
func ExampleWriter_WriteRun() {
	run := bitbuf.NewWriter(make([]byte, 16))
	run.WriteBits(0x2a, 7)
	run.WriteBits(0x155, 9)

	for _, header := range []uint64{1, 2} {
		packet := bitbuf.NewWriter(make([]byte, 16))
		packet.WriteBits(header, 3)
		packet.WriteRun(run.Bytes(), run.Len())
		fmt.Printf("%d bits: %x\n", packet.Len(), packet.Bytes())
	}
	// Output:
	// 19 bits: 515505
	// 19 bits: 525505
}

// A decoder may refuse a value; what it reads afterwards is zeros.
func ExampleReader_Fail() {
	r := bitbuf.NewReader([]byte{0xff, 0xff})
	if health := r.ReadBits(7); health > 100 {
		r.Fail(fmt.Errorf("health %d at bit %d is above 100", health, r.Pos()))
	}
	fmt.Println(r.ReadBits(9), r.Finish())
	// Output: 0 health 127 at bit 7 is above 100
}

func ExampleZigZag() {
	for _, v := range []int64{0, -1, 1, -2} {
		fmt.Print(bitbuf.ZigZag(v), " ")
	}
	// Output: 0 1 2 3
}

// Codes of variable length suit values that are small most of the time. Which one is shortest depends on how small.
func ExampleWriter_WriteExpGolomb() {
	length := func(write func(w *bitbuf.Writer)) int {
		w := bitbuf.NewWriter(make([]byte, 20))
		write(&w)
		return w.Len()
	}
	for _, v := range []uint64{0, 1, 7, 100} {
		fmt.Println(v,
			length(func(w *bitbuf.Writer) { w.WriteExpGolomb(v, 0) }),
			length(func(w *bitbuf.Writer) { w.WriteExpGolomb(v, 3) }),
			length(func(w *bitbuf.Writer) { w.WriteRice(v, 3) }),
			length(func(w *bitbuf.Writer) { w.WriteUvarint(v) }))
	}
	// Output:
	// 0 1 4 4 8
	// 1 3 4 4 8
	// 7 7 4 4 8
	// 100 13 10 16 8
}
