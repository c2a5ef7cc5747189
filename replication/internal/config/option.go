package config

// A ServerFunc is an option of a server.
type ServerFunc func(*ServerOptions)

// ApplyToServer sets what the option is for.
func (f ServerFunc) ApplyToServer(o *ServerOptions) { f(o) }

// A ClientFunc is an option of a client.
type ClientFunc func(*ClientOptions)

// ApplyToClient sets what the option is for.
func (f ClientFunc) ApplyToClient(o *ClientOptions) { f(o) }

// An EndFunc is an option of either end.
type EndFunc func(*EndOptions)

// ApplyToServer sets what the option is for.
func (f EndFunc) ApplyToServer(o *ServerOptions) { f(&o.EndOptions) }

// ApplyToClient sets what the option is for.
func (f EndFunc) ApplyToClient(o *ClientOptions) { f(&o.EndOptions) }

// EndOptions are what servers and clients have in common.
type EndOptions struct {
	MTU     int
	Seed    uint64
	Seeded  bool
	Timeout int // in calls of Replicate or Apply, 0 for none
}
