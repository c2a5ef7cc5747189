//go:build !js

package wire

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
)

func random64() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails: see its documentation
	return binary.LittleEndian.Uint64(b[:])
}

func hmacSHA256(key *[32]byte, data []byte) (sum [32]byte) {
	mac := hmac.New(sha256.New, key[:])
	mac.Write(data)
	mac.Sum(sum[:0])
	return sum
}
