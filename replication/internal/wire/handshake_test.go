package wire

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHandshakeChecksumIsTheSameInAllReleases: if the protocol version were part of the checksum,
// ends of two releases could not report the difference to each other.
func TestHandshakeChecksumIsTheSameInAllReleases(t *testing.T) {
	require.EqualValues(t, 0x61726368, HandshakeKey().Key)
}

// TestHellosWithoutDataAreUnchanged to the byte, and a hello with data has exactly one valid
// length.
func TestHellosWithoutDataAreUnchanged(t *testing.T) {
	h := Hello{Version: 1, Fingerprint: 0x0102030405060708, Nonce: 0x1112131415161718, Offset: 0x21222324, Session: 0x3132333435363738, Codings: 1, Slots: 0x41424344}
	was := []byte{0, 1, 8, 7, 6, 5, 4, 3, 2, 1, 0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11, 0x24, 0x23, 0x22, 0x21, 0x38, 0x37, 0x36, 0x35, 0x34, 0x33, 0x32, 0x31, 1, 0x44, 0x43, 0x42, 0x41}
	require.Equal(t, append(was, make([]byte, 25)...), h.Append(nil))
	for _, size := range []int{0, 1, 22, 23, 24, 100, 511, 512} {
		h.Data = bytes.Repeat([]byte{0xa5}, size)
		body := h.Append(nil)
		require.Len(t, body, max(60, 37+size))
		var got Hello
		require.True(t, got.Parse(body))
		require.Equal(t, h, got)
		require.False(t, got.Parse(body[:len(body)-1]), "shorter")
		require.False(t, got.Parse(append(body, 0)), "longer")
		for _, claimed := range []int{size + 1, size + 30, 513, 0xffff} {
			binary.LittleEndian.PutUint16(body[35:], uint16(claimed))
			require.Equal(t, max(60, 37+claimed) == len(body) && claimed <= MaxJoinData, got.Parse(body), "%d claimed, %d present", claimed, size)
		}
	}
	h.Data = make([]byte, 513)
	require.False(t, (&Hello{}).Parse(h.Append(nil)), "no more than that")
}

// FuzzHello: parsing returns what was appended, up to the padding.
func FuzzHello(f *testing.F) {
	h := Hello{Version: 1, Nonce: 7}
	f.Add(h.Append(nil))
	h.Data = bytes.Repeat([]byte("ann"), 50)
	f.Add(h.Append(nil))
	f.Fuzz(func(t *testing.T, body []byte) {
		var h, again Hello
		if !h.Parse(body) {
			return
		}
		require.LessOrEqual(t, len(h.Data), MaxJoinData)
		b := h.Append(nil)
		require.Len(t, b, len(body))
		require.Equal(t, body[1:HelloSize+len(h.Data)], b[1:HelloSize+len(h.Data)])
		require.True(t, again.Parse(b))
		require.Equal(t, h, again)
	})
}
