package wire

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/bitbuf"
)

// TestMissesOfAReport take a bit if there are none, and come back as they are. There is one way to write none.
func TestMissesOfAReport(t *testing.T) {
	buf := make([]byte, 64)
	size := func(p InputReport, inputs bool) int {
		w := bitbuf.NewWriter(buf)
		p.Write(&w, inputs)
		require.NoError(t, w.Err())
		w.Bytes() // brings buf up to date
		return w.Len()
	}
	report := InputReport{Present: true, Echo: 1 << 15, Held: 3, Gathered: 7, Late: 200, Judged: true, Margin: -2, Back: 131}
	none := size(report, true)
	for _, misses := range []uint32{0, 1, 1 << 31, 0xA5000000, 1<<32 - 1} {
		report.Misses = misses
		bits := size(report, true)
		if misses == 0 {
			require.Equal(t, none, bits)
		} else {
			require.Equal(t, none+32, bits)
		}
		var got InputReport
		r := bitbuf.NewReader(buf[:(bits+7)/8])
		got.Read(&r, true)
		require.NoError(t, r.Err())
		require.Equal(t, bits, r.Pos())
		require.Equal(t, report, got)
	}
	require.Equal(t, 18, size(InputReport{Present: true, Misses: 1}, false), "a schema without an input has none")

	report.Misses = 0
	last := size(report, true) - 1
	buf[last/8] |= 1 << (last % 8)
	clear(buf[last/8+1:])
	r := bitbuf.NewReader(buf)
	var got InputReport
	got.Read(&r, true)
	require.ErrorIs(t, r.Err(), ErrMalformed)
}
