package wire

// Packages crypto/rand and crypto/hmac would add 60 kB to what a browser loads, compressed, for a few bytes of
// randomness and for a function of servers.

import (
	"encoding/binary"
	"syscall/js"
)

func random64() uint64 {
	array := js.Global().Get("Uint8Array").New(8)
	js.Global().Get("crypto").Call("getRandomValues", array)
	var b [8]byte
	js.CopyBytesToGo(b[:], array)
	return binary.LittleEndian.Uint64(b[:])
}

func hmacSHA256(key *[32]byte, data []byte) [32]byte { return smallHMAC(key, data) }
