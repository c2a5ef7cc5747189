package replication

import (
	"fmt"
	"sync"

	"github.com/arche-replicate/arche-replicate/replication/internal/seam"
)

// What packages beside this one see of its inside.

func init() {
	seam.OfClient = func(client any) *seam.Client {
		c, ok := client.(*Client)
		if !ok {
			panic(fmt.Sprintf("replication: a %T is no client: NewClient makes one", client))
		}
		c.mustExist()
		return &seam.Client{
			Schema: c.schema, Recv: &c.recv, Clock: &c.clock, Apply: &c.apply, Messages: c.messages,
			Attached: &c.attached, Ending: &c.ending, Fail: c.fail, Watchers: &c.watchers,
			Received: &c.received, Resume: c.resume, Complete: func() { c.session.Complete = true },
		}
	}
}

var serversShown sync.Once

// showServers is called by NewServer and not by init, so that the linker leaves servers out of programs that have
// clients only.
func showServers() {
	serversShown.Do(func() {
		seam.OfServer = func(server any) seam.Server {
			s, ok := server.(*Server)
			if !ok {
				panic(fmt.Sprintf("replication: a %T is no server: NewServer makes one", server))
			}
			s.mustExist()
			return seam.Server{
				Schema: s.schema, Opts: &s.opts, Snap: &s.snap, Captured: &s.captured, Watchers: &s.watchers,
				Listen: func(send func(packet []byte) error, deaf bool) seam.Listener { return listen(s, send, deaf) },
				Stats:  func(stats any) { s.readStats(stats.(*ServerStats)) },
			}
		}
		seam.OfPeer = func(peer any) seam.Peer {
			p, ok := peer.(*Peer)
			if !ok {
				panic(fmt.Sprintf("replication: a %T is no peer: Server.Connect returns one", peer))
			}
			p.mustExist()
			return seam.Peer{
				Server: p.server, Number: p.conn.Number, MTU: p.opts.MTU, Acked: &p.acked, Messages: p.messages,
			}
		}
	})
}
