package replication

import "github.com/arche-replicate/arche-replicate/replication/internal/sender"

// serverSender is what sends: see [sender.Workers].
type serverSender struct {
	workers sender.Workers
	hashes  []byte // memory for a packet of them
}
