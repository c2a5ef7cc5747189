package wire

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
)

// Servers with the same seed give the same session numbers in browsers as elsewhere.
func TestTheSmallHMACIsHMAC(t *testing.T) {
	var key [32]byte
	data := make([]byte, 700)
	for i := range data {
		data[i] = byte(Mix64(uint64(i)))
	}
	for size := range len(data) {
		binary.LittleEndian.PutUint64(key[:], Mix64(uint64(-size)))
		mac := hmac.New(sha256.New, key[:])
		mac.Write(data[:size])
		want := [32]byte(mac.Sum(nil))
		require.Equal(t, want, smallHMAC(&key, data[:size]), "%d bytes", size)
		require.Equal(t, binary.LittleEndian.Uint64(want[:]), MAC(&key, data[:size]))
	}
}
