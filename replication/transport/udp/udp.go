// Package udp carries the packets of servers and clients over UDP sockets.
//
// A server keeps nothing for an address that has not proven that it receives
// what is sent to it: a stranger is answered with a cookie, never with more
// bytes than it sent, and has to return it. From then on packets have no byte
// more than the library's own.
//
// Packets are neither encrypted nor authenticated: who can read them on their
// way can forge them. Use the package on a LAN, in tests, and where that is
// acceptable.
package udp

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
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

	maxPacket    = 2048 // larger datagrams are dropped
	cookiePeriod = 30 * time.Second
)

// An Option is a setting of Listen.
type Option func(*options)

type options struct {
	maxPeers, maxPerIP, inbox, helloRate int
	now                                  func() time.Duration
}

// WithMaxPeers bounds the peers of a listener, 256 by default.
func WithMaxPeers(n int) Option {
	return positive("WithMaxPeers", n, func(o *options) { o.maxPeers = n })
}

// WithMaxPerIP bounds the peers with one IP address, or for IPv6 one /64
// network, 8 by default.
func WithMaxPerIP(n int) Option {
	return positive("WithMaxPerIP", n, func(o *options) { o.maxPerIP = n })
}

// WithInbox bounds the packets of a peer that wait for Poll, 64 by default.
func WithInbox(packets int) Option {
	return positive("WithInbox", packets, func(o *options) { o.inbox = packets })
}

// WithHelloRate bounds the answers to strangers, all together, per second: 2,000
// by default.
func WithHelloRate(perSecond int) Option {
	return positive("WithHelloRate", perSecond, func(o *options) { o.helloRate = perSecond })
}

func positive(name string, n int, set Option) Option {
	if n < 1 {
		panic(fmt.Sprintf("udp: %s(%d): give a positive number", name, n))
	}
	return set
}

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
