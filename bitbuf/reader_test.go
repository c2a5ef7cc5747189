package bitbuf

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOverrunGivesZerosAndSticks(t *testing.T) {
	for _, n := range []int{0, 1, 3, 7, 8, 9, 15, 16, 17, 40} {
		buf := make([]byte, n)
		for i := range buf {
			buf[i] = 0xff
		}
		r := NewReader(buf)
		for range n {
			require.Equal(t, uint64(0xff), r.ReadBits(8))
		}
		require.NoError(t, r.Finish())
		for _, width := range []uint{1, 57, 58, 64} {
			require.Zero(t, r.ReadBits(width), "%d bits after %d bytes", width, n)
			require.ErrorIs(t, r.Err(), ErrOverrun)
		}
		require.False(t, r.ReadBool())
		require.Zero(t, r.ReadUvarint())
		require.Zero(t, r.ReadExpGolomb(0))
		require.Zero(t, r.ReadRice(0))
		require.Zero(t, r.ReadUnary(7))
		require.Zero(t, r.ReadTruncated(7))
		dst := []byte{1, 2}
		r.ReadBytes(dst)
		require.Equal(t, []byte{0, 0}, dst)
		r.Align()
		require.Equal(t, 8*n, r.Pos())
		require.Zero(t, r.Remaining())
		require.ErrorIs(t, r.Finish(), ErrOverrun)
	}
}

func TestAReadAcrossTheEndKeepsTheBitsThereAre(t *testing.T) {
	for n := range 20 {
		buf := make([]byte, n)
		for i := range buf {
			buf[i] = 0xff
		}
		for left := range min(8*n, 64) {
			r := NewReader(buf)
			for range 8*n - left {
				r.ReadBool()
			}
			require.Equal(t, lowBits[left], r.ReadBits(64), "%d bits left of %d bytes", left, n)
			require.ErrorIs(t, r.Err(), ErrOverrun)
		}
	}
}

func TestSkipPassesOverBits(t *testing.T) {
	for n := range 20 {
		buf := make([]byte, n)
		for i := range buf {
			buf[i] = byte(37 * (i + 1))
		}
		for skip := range uint(8*n + 100) {
			r, want := NewReader(buf), NewReader(buf)
			for range skip {
				want.ReadBool()
			}
			r.Skip(skip)
			require.Equal(t, want.Pos(), r.Pos())
			require.Equal(t, want.Remaining(), r.Remaining())
			require.Equal(t, want.ReadBits(23), r.ReadBits(23), "%d bits of %d bytes", skip, n)
			require.Equal(t, want.Err(), r.Err())
		}
	}
	r := NewReader([]byte{1, 2})
	r.Skip(1<<32 - 1)
	require.ErrorIs(t, r.Err(), ErrOverrun)
	require.Zero(t, r.ReadBits(64))
}

func TestAlignRefusesPaddingThatIsNotZero(t *testing.T) {
	for pos := uint(1); pos < 8; pos++ {
		for bad := pos; bad < 8; bad++ {
			r := NewReader([]byte{1 << bad, 0xff})
			r.ReadBits(pos)
			r.Align()
			require.ErrorIs(t, r.Err(), ErrPadding)
			require.Zero(t, r.ReadBits(8), "nothing is delivered after an error")
			require.Zero(t, r.Remaining())
		}
		r := NewReader([]byte{1<<pos - 1, 0xff})
		r.ReadBits(pos)
		r.Align()
		require.NoError(t, r.Err())
		require.Equal(t, 8, r.Pos())
		r.Align()
		require.Equal(t, 8, r.Pos())
		require.Equal(t, uint64(0xff), r.ReadBits(8))
	}
}

func TestFinishAcceptsZeroPaddingOnly(t *testing.T) {
	for _, c := range []struct {
		name string
		buf  []byte
		read uint
		want error
	}{
		{"empty", nil, 0, nil},
		{"all read", []byte{0xff}, 8, nil},
		{"zero padding", []byte{0x01}, 1, nil},
		{"a padding bit", []byte{0x81}, 1, ErrTrailing},
		{"a zero byte", []byte{0xff, 0}, 8, ErrTrailing},
		{"8 zero bits", []byte{0x0f, 0}, 8, ErrTrailing},
		{"7 zero bits", []byte{0xff, 1}, 9, nil},
		{"overrun", []byte{0xff}, 9, ErrOverrun},
		{"a long rest", make([]byte, 100), 8, ErrTrailing},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := NewReader(c.buf)
			r.ReadBits(c.read)
			require.Equal(t, c.want, r.Finish())
		})
	}
}

func TestTheFirstErrorStays(t *testing.T) {
	r := NewReader([]byte{0xff, 0xff})
	r.ReadBits(3)
	r.Fail(errTest)
	require.Equal(t, errTest, r.Err())
	require.Equal(t, 3, r.Pos(), "where the decoder gave up")
	r.ReadBits(64)
	r.Fail(ErrCode)
	require.Equal(t, errTest, r.Err())
	require.Equal(t, errTest, r.Finish())
	require.Equal(t, 3, r.Pos())

	r.Reset([]byte{1})
	require.NoError(t, r.Err())
	r.ReadBits(9)
	r.Fail(errTest)
	require.Equal(t, ErrOverrun, r.Err(), "the overrun came first")
	require.Panics(t, func() { r.Fail(nil) })
}

func TestACopyOfAReaderReadsByItself(t *testing.T) {
	r := NewReader([]byte{1, 2, 3})
	r.ReadBits(8)
	ahead := r
	require.Equal(t, uint64(2), ahead.ReadBits(8))
	require.Equal(t, uint64(2), r.ReadBits(8))
}

func TestMisuseOfAReaderPanics(t *testing.T) {
	for _, buf := range [][]byte{nil, make([]byte, 3), make([]byte, 100)} {
		r := NewReader(buf)
		require.Panics(t, func() { r.ReadBits(65) })
		require.Panics(t, func() { r.ReadBits(^uint(0)) })
		require.PanicsWithValue(t, badOrder, func() { r.ReadExpGolomb(64) })
		require.PanicsWithValue(t, badOrder, func() { r.ReadRice(64) })
		require.Panics(t, func() { r.ReadUnary(64) })
		require.Panics(t, func() { r.ReadTruncated(0) })
		require.Panics(t, func() { r.ReadTruncated(1<<63 + 1) })
		require.Zero(t, r.Pos())
	}
}

func TestZeroReaderReadsNothing(t *testing.T) {
	var r Reader
	require.NoError(t, r.Finish())
	require.Zero(t, r.ReadBits(3))
	require.ErrorIs(t, r.Err(), ErrOverrun)
}
