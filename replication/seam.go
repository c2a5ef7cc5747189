package replication

import (
	"fmt"

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
		return &seam.Client{Schema: c.schema, Recv: &c.recv, Apply: &c.apply, Clock: &c.clock}
	}
}
