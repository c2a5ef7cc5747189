package delta

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLayoutPlacesFieldsOneAfterTheOther(t *testing.T) {
	l := NewLayout(
		Component{Name: "body", Fields: []Field{
			{Name: "x", Kind: Linear, Bits: 18},
			{Name: "q", Kind: Quat, Bits: 9},
			{Name: "id", Kind: Plain, Bits: 33},
			{Name: "a", Kind: Wrap, Bits: 32},
			{Name: "one", Kind: Plain, Bits: 0},
			{Name: "b", Kind: Plain, Bits: 64, Max: 9},
			{Name: "owner", Kind: Reference, Bits: ReferenceBits},
		}},
		Component{Name: "tag"},
		Component{Name: "hp", Fields: []Field{{Name: "hp", Kind: Linear, Bits: 7, Max: 100}}},
		Component{Name: "who", Fields: []Field{
			{Name: "name", Kind: Bytes, Max: 33},
			{Name: "team", Kind: Plain, Bits: 2},
			{Name: "tag", Kind: Bytes, Bits: 7, Max: 4},
		}},
	)
	require.Equal(t, 11, l.Fields())
	for i, want := range []struct{ words, width, least, first int }{
		{1 + 4 + 2 + 1 + 1 + 2 + 2, 18 + (2 + 27) + 33 + 32 + 0 + 64 + 52, 18 + (2 + 27) + 33 + 32 + 0 + 64 + 1, 0},
		{0, 0, 0, 7},
		{1, 7, 7, 7},
		{1 + 9 + 1 + 1 + 1, 6 + 1 + 8*33 + 2 + 3 + 1 + 8*4, 6 + 2 + 3, 8},
	} {
		c := &l.Components[i]
		require.Equal(t, want.words, c.Words(), c.Name)
		require.Equal(t, want.width, c.Width(), c.Name)
		require.Equal(t, want.least, c.MinWidth(), c.Name)
		require.Equal(t, want.first, c.first, c.Name)
	}
	for i, want := range []struct {
		word, words int
		width       uint
		most        uint64
	}{
		{0, 1, 18, 1<<18 - 1},
		{1, 4, 29, 1<<9 - 1},
		{5, 2, 33, 1<<33 - 1},
		{7, 1, 32, 1<<32 - 1},
		{8, 1, 0, 0},
		{9, 2, 64, 9},
		{11, 2, 52, 1<<52 - 1},
	} {
		f := &l.Components[0].Fields[i]
		require.Equal(t, want.word, f.Word(), f.Name)
		require.Equal(t, want.words, f.Words(), f.Name)
		require.Equal(t, want.width, f.Width(), f.Name)
		require.Equal(t, want.most, f.Max, f.Name)
	}
}

func TestValidRowsHaveCodesUpToTheLargest(t *testing.T) {
	c := &NewLayout(Component{Fields: []Field{
		{Kind: Linear, Bits: 7, Max: 100},
		{Kind: Quat, Bits: 3},
		{Kind: Plain, Bits: 40},
	}}).Components[0]
	for _, row := range [][]uint32{
		{0, 0, 0, 0, 0, 0, 0},
		{100, 3, 7, 7, 7, 1<<32 - 1, 255},
	} {
		require.True(t, c.Valid(row), row)
	}
	for i, code := range []uint32{101, 4, 8, 8, 8, 0, 256} {
		if code != 0 {
			row := make([]uint32, 7)
			row[i] = code
			require.False(t, c.Valid(row), row)
		}
	}
}

func TestReferencesHaveOneWayToNameNothing(t *testing.T) {
	c := &NewLayout(Component{Fields: []Field{{Kind: Reference, Bits: ReferenceBits}}}).Components[0]
	for _, row := range [][]uint32{{0, 0}, {1, 0}, {1, 1<<16 - 1}, {maxReferences, 5}} {
		require.True(t, c.Valid(row), row)
	}
	for _, row := range [][]uint32{{0, 1}, {1, 1 << 16}, {maxReferences + 1, 0}, {1<<32 - 1, 1<<32 - 1}} {
		require.False(t, c.Valid(row), row)
	}
}

func TestValidTextsEndInZeros(t *testing.T) {
	c := &NewLayout(Component{Fields: []Field{{Kind: Plain, Bits: 1}, {Kind: Bytes, Max: 6}}}).Components[0]
	for _, row := range [][]uint32{
		{1, 0, 0, 0},
		{1, 1, 0xff, 0},
		{1, 1, 0, 0}, // a zero byte
		{1, 4, 1<<32 - 1, 0},
		{1, 6, 1<<32 - 1, 0xffff},
	} {
		require.True(t, c.Valid(row), row)
	}
	for _, row := range [][]uint32{
		{1, 7, 0, 0},
		{1, 1<<32 - 1, 0, 0},
		{1, 0, 1, 0},
		{1, 1, 0x100, 0},
		{1, 3, 1 << 24, 0},
		{1, 4, 0, 1},
		{1, 6, 0, 0x10000},
	} {
		require.False(t, c.Valid(row), row)
	}
}

func TestLayoutRefusesFieldsOutsideTheirLimits(t *testing.T) {
	const widths = ": a quaternion takes 2 to 20 a component, other fields 0 to 64"
	for _, c := range []struct {
		f    Field
		want string // "" if the field is fine
	}{
		{Field{Kind: Quat, Bits: 1}, "delta: c.f has 1 bits" + widths},
		{Field{Kind: Quat, Bits: 2}, ""},
		{Field{Kind: Quat, Bits: 20}, ""},
		{Field{Kind: Quat, Bits: 21}, "delta: c.f has 21 bits" + widths},
		{Field{Kind: Plain, Bits: 64}, ""},
		{Field{Kind: Plain, Bits: 65}, "delta: c.f has 65 bits" + widths},
		{Field{Kind: Linear, Bits: 3, Max: 7}, ""},
		{Field{Kind: Linear, Bits: 3, Max: 8}, "delta: c.f has a largest code of 8, which takes more than its 3 bits"},
		{Field{Kind: Wrap, Bits: 0, Max: 1}, "delta: c.f has a largest code of 1, which takes more than its 0 bits"},
		{Field{Kind: Reference, Bits: 52}, ""},
		{Field{Kind: Reference, Bits: 46}, "delta: c.f has 46 bits: a reference has 52"},
		{Field{Kind: Bytes}, "delta: c.f has room for 0 bytes: use 1 to 4096"},
		{Field{Kind: Bytes, Max: 1}, ""},
		{Field{Kind: Bytes, Max: MaxBytes}, ""},
		{Field{Kind: Bytes, Max: MaxBytes + 1}, "delta: c.f has room for 4097 bytes: use 1 to 4096"},
		{Field{Kind: 8, Bits: 3}, "delta: c.f is of no known kind: use Plain, Linear, Wrap, Quat, Reference, Counter, Flags or Bytes, not Kind(8)"},
	} {
		c.f.Name = "f"
		build := func() { NewLayout(Component{Name: "c", Fields: []Field{c.f}}) }
		if c.want == "" {
			require.NotPanics(t, build)
		} else {
			require.PanicsWithValue(t, c.want, build)
		}
	}
	require.NotPanics(t, func() { NewLayout(make([]Component, MaxComponents)...) })
	require.PanicsWithValue(t, "delta: 257 components in a layout: the limit is 256",
		func() { NewLayout(make([]Component, MaxComponents+1)...) })
}

func TestKindsHaveNames(t *testing.T) {
	for k, want := range map[Kind]string{Plain: "plain", Linear: "linear", Wrap: "wrap", Quat: "quat", Reference: "reference", Counter: "counter", Flags: "flags", Bytes: "bytes", 200: "Kind(200)"} {
		require.Equal(t, want, k.String())
	}
}
