package replicationtest

import "github.com/arche-replicate/arche-replicate/replication/internal/config"

// FirstTick is an option of a server: the tick of its first Replicate. Ticks wrap.
func FirstTick(t uint32) config.ServerFunc {
	return func(o *config.ServerOptions) { o.FirstTick = t }
}

// FirstSequence is an option of a server: the sequence number of the first packet to each peer. Sequences wrap.
func FirstSequence(s uint16) config.ServerFunc {
	return func(o *config.ServerOptions) { o.FirstSequence = s }
}
