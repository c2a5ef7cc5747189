package replication

import (
	"testing"

	"github.com/mlange-42/arche/ecs"
)

// A reusingLink is a server with one client, like a fixture, that allocates nothing itself: its
// packets travel in reused memory.
type reusingLink struct {
	t             *testing.T
	world, mirror *ecs.World
	server        *Server
	peer          *Peer
	client        *Client
	down, up      [][]byte
}

func newReusingLink(t *testing.T, schema *Schema, opts ...PeerOption) *reusingLink {
	world, mirror := ecs.NewWorld(), ecs.NewWorld()
	x := &reusingLink{t: t, world: &world, mirror: &mirror}
	x.server = NewServer(x.world, schema, WithSeed(1))
	x.peer = x.server.Connect(carryInto(&x.down), opts...)
	x.client = NewClientWith(x.mirror, schema, carryInto(&x.up), WithSeed(1))
	return x
}

// round is a tick on a perfect network.
func (x *reusingLink) round() {
	x.server.Replicate()
	x.receive()
	x.apply()
	x.acknowledge()
}

func (x *reusingLink) receive() {
	for _, p := range x.down {
		_ = x.client.Receive(p)
	}
	x.down = x.down[:0]
}

func (x *reusingLink) apply() {
	if err := x.client.Apply(); err != nil {
		x.t.Fatal(err)
	}
}

func (x *reusingLink) acknowledge() {
	for _, p := range x.up {
		_ = x.peer.Receive(p)
	}
	x.up = x.up[:0]
}

// carryInto returns a send function that copies packets into memory that is reused once the list
// was emptied.
func carryInto(to *[][]byte) func(p []byte) error {
	return func(p []byte) error {
		if len(*to) < cap(*to) {
			*to = (*to)[:len(*to)+1]
			last := &(*to)[len(*to)-1]
			*last = append((*last)[:0], p...)
		} else {
			*to = append(*to, append(make([]byte, 0, 1500), p...))
		}
		return nil
	}
}
