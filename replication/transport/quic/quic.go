// Package quic carries the packets of servers and clients in QUIC datagrams: encrypted and authenticated by TLS
// 1.3, and as quick as UDP, for lost packets delay no others. It is the transport for the internet.
//
// The server has a certificate: its own by [WithCertificate], or a self-made one that clients know by
// [WithFingerprint]. Who a client is, the server learns from a token of the game's login, which
// [replication.WithJoinData] sends and [replication.Server.OnJoin] checks.
//
// A client that gets another address stays connected. If its connection breaks, or the server was away, it
// connects again by itself.
package quic

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"time"

	quicgo "github.com/quic-go/quic-go"

	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/arche-replicate/arche-replicate/replication/transport"
)

const (
	protocol = "arche-replicate" // of TLS's ALPN

	// packetSize is that of a path where packets of IPv4 have 1,280 bytes, as in tunnels. Datagrams have at most
	// mtu bytes in it, and room to spare.
	packetSize = 1252
	mtu        = 1200
)

// Codes with which a server closes a connection.
const (
	codeClosed quicgo.ApplicationErrorCode = iota // nothing to remark
	codeFull
	codeFullIP
	codeShut        // the listener is closed
	codeNoDatagrams // the client takes none
)

// An Option is a setting of Listen or Dial.
type Option func(*options)

type options struct {
	dial    string // the address, for Dial
	limits  transport.Limits
	network *netsim.Network

	handshake time.Duration // for how long the other end may be silent
	idle      time.Duration

	certificate func() (source, error)
	chosen      string // the option that chose it, or how a server is trusted
	fingerprint string
	roots       *x509.CertPool
	now         func() time.Time
}

// WithLimits bounds what clients take. It is for Listen.
func WithLimits(l transport.Limits) Option {
	return func(o *options) { o.forListen("WithLimits"); o.limits = l }
}

// WithNetwork makes all packets go through a bad network, in both directions.
func WithNetwork(n *netsim.Network) Option {
	if n == nil {
		panic("quic: WithNetwork: there is no network: netsim.NewNetwork makes one; leave the option out for none")
	}
	return func(o *options) { o.network = n }
}

// WithCertificate gives the server a certificate by the names of PEM files: one with the certificate and the chain
// to an authority, one with its key. When they are renewed, new connections get the new certificate within a
// minute. It is for Listen.
func WithCertificate(certFile, keyFile string) Option {
	return func(o *options) {
		o.forListen("WithCertificate")
		o.choose("WithCertificate")
		o.certificate = func() (source, error) { return newFiles(certFile, keyFile, o.now) }
	}
}

// WithSelfSigned gives the server a self-made certificate, for development and for clients that know its
// fingerprint: see [WithFingerprint]. It is kept in a file with its key, which is made if it does not exist, so
// that it stays the same when the server starts again. It is for Listen.
func WithSelfSigned(file string) Option {
	return func(o *options) {
		o.forListen("WithSelfSigned")
		o.choose("WithSelfSigned")
		o.certificate = func() (source, error) { return keptCertificate(file, o.now()) }
	}
}

// WithTLS gives the server the certificate, and other settings, of a tls.Config. Its MinVersion and NextProtos are
// set. It is for Listen.
func WithTLS(config *tls.Config) Option {
	if config == nil {
		panic("quic: WithTLS: the configuration is nil: leave the option out for a self-made certificate")
	}
	return func(o *options) {
		o.forListen("WithTLS")
		o.choose("WithTLS")
		o.certificate = func() (source, error) { return fromConfig(config) }
	}
}

// WithFingerprint makes the client trust a server whose certificate has this fingerprint, which
// [Listener.Fingerprint] returns there, and no other. Nothing else is checked, neither names nor dates. It is for
// Dial.
func WithFingerprint(sha256 string) Option {
	return func(o *options) {
		o.forDial("WithFingerprint")
		o.choose("WithFingerprint")
		o.fingerprint = sha256
	}
}

// WithRoots makes the client trust a server whose certificate is for its host name, from one of these authorities, in
// place of the system's. It is for Dial.
func WithRoots(roots *x509.CertPool) Option {
	if roots == nil {
		panic("quic: WithRoots: there is no pool: leave the option out for the system's authorities")
	}
	return func(o *options) {
		o.forDial("WithRoots")
		o.choose("WithRoots")
		o.roots = roots
	}
}

func (o *options) forListen(name string) {
	if o.dial != "" {
		panic("quic: Dial: " + name + " is an option of Listen: leave it out")
	}
}

func (o *options) forDial(name string) {
	if o.dial == "" {
		panic("quic: Listen: " + name + " is an option of Dial: leave it out")
	}
}

func (o *options) choose(name string) {
	if o.chosen != "" {
		panic(fmt.Sprintf("quic: %s and %s exclude each other: leave one out", o.chosen, name))
	}
	o.chosen = name
}

// settings applies options to the defaults of Listen, or of Dial with an address.
func settings(dial string, opts []Option) *options {
	o := &options{dial: dial, handshake: 5 * time.Second, idle: 30 * time.Second, now: time.Now}
	if dial != "" {
		o.idle = 10 * time.Second
	}
	o.certificate = func() (source, error) { return selfSigned(o.now()) }
	for _, opt := range opts {
		if opt == nil {
			panic("quic: an option is nil: leave it out")
		}
		opt(o)
	}
	return o
}

func (o *options) config() *quicgo.Config {
	return &quicgo.Config{
		HandshakeIdleTimeout:  o.handshake,
		MaxIdleTimeout:        o.idle,
		MaxIncomingStreams:    -1,
		MaxIncomingUniStreams: -1,
		InitialPacketSize:     packetSize,
		EnableDatagrams:       true,
	}
}
