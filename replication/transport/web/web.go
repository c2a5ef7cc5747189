// Package web carries packets between a server and clients in web browsers: over
// WebTransport where the browser has it and the server offers it, else over a
// WebSocket.
//
// The server's end is an [Handler] for package net/http:
//
//	handler := web.NewHandler(server)
//	http.Handle("/play", handler)
//
// The client's end is [Dial], in a program built for GOOS=js. The page loads the
// handler's script before it, which opens the sockets:
//
//	<script src="/play?js"></script>
//
// Elsewhere, Dial opens a WebSocket to the same handler: for bots, and for tests.
package web

import (
	"fmt"
	"strings"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/arche-replicate/arche-replicate/replication/transport"
)

// An Option is a setting of NewHandler or Dial.
type Option func(*options)

type options struct {
	dial    bool // else NewHandler
	limits  transport.Limits
	network *netsim.Network
	origins []string
	coding  replication.Coding
}

// WithLimits bounds what clients take. It is for NewHandler. Behind a proxy that
// is not known to [net/http], all clients have one address: raise PeersPerIP.
func WithLimits(l transport.Limits) Option {
	return func(o *options) { o.onlyHandler("WithLimits"); o.limits = l }
}

// WithCoding sets the coding of the states that clients are sent: see
// [replication.WithCoding]. It is for NewHandler.
func WithCoding(c replication.Coding) Option {
	replication.WithCoding(c) // panics if there is no such coding
	return func(o *options) { o.onlyHandler("WithCoding"); o.coding = c }
}

// WithNetwork makes all packets go through a bad network, in both directions.
func WithNetwork(n *netsim.Network) Option {
	if n == nil {
		panic("web: WithNetwork: there is no network: netsim.NewNetwork makes one; leave the option out for none")
	}
	return func(o *options) { o.network = n }
}

// WithOrigins allows pages of other hosts to connect, each named by its origin,
// such as "https://game.example" or "http://127.0.0.1:8080"; "*" allows all. Pages
// of the handler's own host may always connect, and programs that are no browsers,
// which send no origin. It is for NewHandler.
func WithOrigins(origins ...string) Option {
	for _, origin := range origins {
		scheme, host, ok := strings.Cut(origin, "://")
		if origin != "*" && (!ok || scheme == "" || host == "" || strings.ContainsAny(host, "/?#*")) {
			panic(fmt.Sprintf("web: WithOrigins: %q is not an origin: give a scheme and a host, "+
				"such as \"https://game.example\", or \"*\" for all", origin))
		}
	}
	return func(o *options) { o.onlyHandler("WithOrigins"); o.origins = append(o.origins, origins...) }
}

func (o *options) onlyHandler(name string) {
	if o.dial {
		panic("web: Dial: " + name + " is an option of NewHandler: leave it out")
	}
}

func settings(dial bool, opts []Option) *options {
	o := &options{dial: dial}
	for _, opt := range opts {
		if opt == nil {
			panic("web: an option is nil: leave it out")
		}
		opt(o)
	}
	return o
}
