package udp

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"net/netip"
	"time"
)

// A datagram of a client that does not know yet whether the server knows its address begins with a
// header: magic, then the server's cookie or zeros. The server answers with such a header alone.
const (
	magic      = "\xf7replUDP"
	cookieSize = 16
	headerSize = len(magic) + cookieSize

	cookiePeriod = 30 * time.Second
)

// split returns the cookie and the packet of a datagram with a header.
func split(datagram []byte) (cookie, packet []byte, ok bool) {
	if len(datagram) < headerSize || string(datagram[:len(magic)]) != magic {
		return nil, datagram, false
	}
	return datagram[len(magic):headerSize], datagram[headerSize:], true
}

// baker makes cookies: what proves an address is kept by its owner, not here.
type baker struct {
	mac hash.Hash
	in  [26]byte // address, port, period
	sum [sha256.Size]byte
}

func newBaker() baker {
	var secret [32]byte
	_, _ = rand.Read(secret[:]) // never fails
	return baker{mac: hmac.New(sha256.New, secret[:])}
}

// cookie returns the cookie of an address in a period. It is valid until the next call.
func (b *baker) cookie(addr netip.AddrPort, period uint64) []byte {
	ip := addr.Addr().As16()
	copy(b.in[:], ip[:])
	binary.LittleEndian.PutUint16(b.in[16:], addr.Port())
	binary.LittleEndian.PutUint64(b.in[18:], period)
	b.mac.Reset()
	b.mac.Write(b.in[:])
	return b.mac.Sum(b.sum[:0])[:cookieSize]
}

// proves reports whether the cookie is one of the address, of this period or the last.
func (b *baker) proves(cookie []byte, addr netip.AddrPort, period uint64) bool {
	if hmac.Equal(cookie, b.cookie(addr, period)) {
		return true
	}
	return period > 0 && hmac.Equal(cookie, b.cookie(addr, period-1))
}
