// Package udp carries the packets of servers and clients over UDP sockets.
//
// A server keeps nothing for an address that has not proven that it receives
// what is sent to it: a stranger is answered with a cookie, never with more
// bytes than it sent, and has to return it. From then on packets have no byte
// more than the library's own.
//
// Packets are neither encrypted nor authenticated: who can read them on their
// way can forge them. Use the package on a LAN, in tests, and where that is
// acceptable, or give it the game's own keys with [WithSeal]. Package quic is for
// the internet.
package udp

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/arche-replicate/arche-replicate/replication/transport"
)

// An Option is a setting of Listen or Dial.
type Option func(*options)

type options struct {
	dial       bool // else Listen
	limits     transport.Limits
	helloRate  int
	network    *netsim.Network
	seal, open func(dst, packet []byte, address netip.AddrPort) ([]byte, error)
	now        func() time.Duration
}

// DefaultHelloRate is the number of answers to strangers per second without [WithHelloRate].
const DefaultHelloRate = 2000

// WithLimits bounds what clients take. It is for Listen.
func WithLimits(l transport.Limits) Option {
	return func(o *options) { o.onlyListen("WithLimits"); o.limits = l }
}

// WithHelloRate bounds the answers to addresses that have proven nothing, all
// together, per second: 2,000 by default. It is for Listen.
func WithHelloRate(perSecond int) Option {
	if perSecond < 1 {
		panic(fmt.Sprintf("udp: WithHelloRate(%d): give a positive number", perSecond))
	}
	return func(o *options) { o.onlyListen("WithHelloRate"); o.helloRate = perSecond }
}

// WithNetwork makes all packets go through a bad network, in both directions.
func WithNetwork(n *netsim.Network) Option {
	if n == nil {
		panic("udp: WithNetwork: there is no network: netsim.NewNetwork makes one; leave the option out for none")
	}
	return func(o *options) { o.network = n }
}

// WithSeal encrypts and authenticates packets with keys of the game's own, such as
// those of a login server. Both ends need it.
//
// seal appends the sealed packet to dst; open appends the packet that was sealed,
// or returns an error, and the packet is dropped and counted. address is the other
// end's. dst and packet don't overlap, and are the caller's again afterwards. A
// sealed packet is larger: lower [replication.WithMTU] by as much. open is called on the goroutine of the
// socket, seal on the one of the loop, or of the network of [WithNetwork].
func WithSeal(seal, open func(dst, packet []byte, address netip.AddrPort) ([]byte, error)) Option {
	if seal == nil || open == nil {
		panic("udp: WithSeal needs both functions: one that seals packets and one that opens them")
	}
	return func(o *options) { o.seal, o.open = seal, open }
}

func (o *options) onlyListen(name string) {
	if o.dial {
		panic("udp: Dial: " + name + " is an option of Listen: leave it out")
	}
}

func settings(dial bool, opts []Option) *options {
	start := time.Now()
	o := &options{dial: dial, helloRate: DefaultHelloRate, now: func() time.Duration { return time.Since(start) }}
	for _, opt := range opts {
		if opt == nil {
			panic("udp: an option is nil: leave it out")
		}
		opt(o)
	}
	return o
}

func unmap(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()) }

// mostBytes is more than any datagram has.
const mostBytes = 1 << 16

// afterError is the pause after an error of a socket, so that one that stays does not keep a processor busy.
const afterError = time.Millisecond
