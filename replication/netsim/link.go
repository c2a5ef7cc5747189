package netsim

import "math/rand/v2"

// Link is two independent pipes between a client and a server.
type Link struct {
	Up   *Pipe // from the client to the server
	Down *Pipe // from the server to the client
}

// NewLink returns a link at tick 0 with the same configuration in both directions, but independent random numbers, see
// [NewPipe].
//
// Panics if the configuration is not valid, see [Config.Validate].
func NewLink(seed uint64, cfg Config) *Link {
	// A random sequence other than that from which a pipe takes its seeds.
	seeds := rand.NewPCG(seed, 1)
	return &Link{
		Up:   NewPipe(seeds.Uint64(), cfg),
		Down: NewPipe(seeds.Uint64(), cfg),
	}
}

// Step advances time by one tick in both directions.
func (l *Link) Step() {
	l.Up.Step()
	l.Down.Step()
}

// SetConfig is [Pipe.SetConfig] in both directions.
func (l *Link) SetConfig(cfg Config) {
	l.Up.SetConfig(cfg)
	l.Down.SetConfig(cfg)
}
