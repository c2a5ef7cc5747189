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
	history := delta.NewHistory(layout.Components[0].Words(), 64) // both ends keep one
	history.Set(0, 96, 96, []uint32{50_000, 20_000, 100})
	history.Set(0, 100, 96, []uint32{50_040, 20_020, 100})
	now, ship := delta.Tick(103), []uint32{50_071, 20_035, 100}

	base, _ := history.At(0, 100)
	base2, _ := history.At(0, 96)
	ratio := delta.Ratio(now, 100, 96)

	full, update := bitbuf.NewWriter(make([]byte, 64)), bitbuf.NewWriter(make([]byte, 64))
	coding := delta.NewPacked(layout)
	coding.EncodeRow(&full, 0, ship, nil, nil, 0)
	coding.EncodeRow(&update, 0, ship, base, base2, ratio)
	fmt.Println(full.Len(), "bits as a full state,", update.Len(), "as an update")

	got := make([]uint32, len(ship))
	r := bitbuf.NewReader(update.Bytes())
	coding.DecodeRow(&r, 0, got, base, base2, ratio)
	fmt.Println(got, r.Finish())
	// Output:
	// 43 bits as a full state, 8 as an update
	// [50071 20035 100] <nil>
}
