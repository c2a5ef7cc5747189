package delta_test

import (
	"fmt"

	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
)

// A state is coded against one that the receiver has acknowledged, at tick 100, and a second one from tick 96, from which
// both ends extrapolate. Health, which stays, costs nothing, and positions only what the extrapolation is off by.
func Example() {
	layout := delta.NewLayout(delta.Component{Name: "Ship", Fields: []delta.Field{
		{Name: "X", Kind: delta.Linear, Bits: 18},
		{Name: "Y", Kind: delta.Linear, Bits: 18},
		{Name: "Health", Kind: delta.Plain, Bits: 7},
	}})
	acked, older := []uint32{50_040, 20_020, 100}, []uint32{50_000, 20_000, 100} // of ticks 100 and 96, at both ends
	ship, ratio := []uint32{50_071, 20_035, 100}, delta.Ratio(103, 100, 96)

	full, update := bitbuf.NewWriter(make([]byte, 64)), bitbuf.NewWriter(make([]byte, 64))
	coding := delta.NewPacked(layout)
	coding.EncodeRow(&full, 0, ship, nil, nil, 0)
	coding.EncodeRow(&update, 0, ship, acked, older, ratio)
	fmt.Println(full.Len(), "bits as a full state,", update.Len(), "as an update")

	got := make([]uint32, len(ship))
	r := bitbuf.NewReader(update.Bytes())
	coding.DecodeRow(&r, 0, got, acked, older, ratio)
	fmt.Println(got, r.Finish())
	// Output:
	// 43 bits as a full state, 8 as an update
	// [50071 20035 100] <nil>
}
