package config

import "time"

// ServerFunc is an option of a server.
type ServerFunc func(*ServerOptions)

// ApplyToServer applies the option.
func (f ServerFunc) ApplyToServer(o *ServerOptions) { f(o) }

// ClientFunc is an option of a client.
type ClientFunc func(*ClientOptions)

// ApplyToClient applies the option.
func (f ClientFunc) ApplyToClient(o *ClientOptions) { f(o) }

// EndFunc is an option of either end.
type EndFunc func(*EndOptions)

// ApplyToServer applies the option.
func (f EndFunc) ApplyToServer(o *ServerOptions) { f(&o.EndOptions) }

// ApplyToClient applies the option.
func (f EndFunc) ApplyToClient(o *ClientOptions) { f(&o.EndOptions) }

// EndOptions has the settings that servers and clients share.
type EndOptions struct {
	MTU     int
	Seed    uint64
	Seeded  bool
	Timeout time.Duration // 0 for none, -1 for the default
}
