package delta

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDeviationBits(t *testing.T) {
	linear := []Field{{Kind: Linear, Bits: 18}}
	wide := []Field{{Kind: Linear, Bits: 40}}
	angle := []Field{{Kind: Wrap, Bits: 10}}
	hours := []Field{{Kind: Wrap, Bits: 10, Max: 999}}
	quat := []Field{{Kind: Quat, Bits: 9}}
	type row = []uint32
	for _, c := range []struct {
		name             string
		fields           []Field
		cur, base, base2 row
		ratio            int64
		want             int
	}{
		{"near", linear, row{1100}, row{1000}, nil, 0, 0},
		{"far", linear, row{5000}, row{1000}, nil, 0, 12},
		{"back", linear, row{1000}, row{5000}, nil, 0, 12},
		{"fast, and going on", linear, row{5000}, row{1000}, row{0}, 4 << 16, 0},
		{"fast, and stopping", linear, row{1000}, row{1000}, row{0}, 4 << 16, 0}, // that is never dear
		{"the end of an angle", angle, row{3}, row{1020}, nil, 0, 0},
		{"half round", angle, row{500}, row{0}, nil, 0, 9},
		{"a circle of another size", hours, row{3}, row{998}, nil, 0, 0},
		{"low words alone", wide, row{5, 7}, row{3, 7}, nil, 0, 0},
		{"high words alone", wide, row{5, 7}, row{5, 5}, nil, 0, 34},
		{"wide, and going on", wide, row{5, 7}, row{5, 5}, row{5, 4}, 2 << 16, 0},
		{"a rotation", quat, row{1, 200, 10, 10}, row{1, 100, 10, 10}, nil, 0, 7},
		{"going on", quat, row{1, 200, 10, 10}, row{1, 100, 10, 10}, row{1, 50, 10, 10}, 2 << 16, 0},
		{"in another chart", quat, row{2, 200, 300, 10}, row{1, 100, 10, 10}, nil, 0, 18},
		{"the second baseline in another chart", quat, row{1, 200, 10, 10}, row{1, 100, 10, 10}, row{2, 50, 10, 10}, 2 << 16, 7},
		{"plain", []Field{{Kind: Plain, Bits: 20}}, row{5}, row{99999}, nil, 0, 0},
		{"nothing", []Field{{Kind: Linear}}, row{0}, row{0}, nil, 0, 0},
	} {
		l := NewLayout(Component{Fields: c.fields})
		require.Equal(t, c.want, l.Components[0].DeviationBits(c.cur, c.base, c.base2, c.ratio), c.name)
	}
}
