// Package seam lets packages beside replication, such as interpolation, see the inside of its clients and
// servers without being part of it. It owns nothing: package replication sets its functions, which take
// public values and return pointers to their parts. What they point to is only read, except for what the
// fields name, and between the calls of the client or server that it belongs to.
package seam

import (
	"time"

	"github.com/arche-replicate/arche-replicate/replication/internal/apply"
	"github.com/arche-replicate/arche-replicate/replication/internal/clock"
	"github.com/arche-replicate/arche-replicate/replication/internal/message"
	"github.com/arche-replicate/arche-replicate/replication/internal/receive"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
)

// A Client is the inside of a *replication.Client. The pointers stay valid as long as the client.
//
// A row is as old as the state that it is in, with two exceptions. Components with a condition are in the
// states of another slot, see [apply.Applier.RowsOf]. A component with Every is captured in one of that many
// ticks up to the state's; in which one the client cannot know, since the server moves the phases of grouped
// entities and captures some entities early.
type Client struct {
	Schema *schema.Schema
	Recv   *receive.Receiver // held states, and what is known of ticks; Watches may be added
	Clock  *clock.Ticks      // the client's time, and the server's as it knows that
	Apply  *apply.Applier    // the world, and what shows which slot; View.Replaced, View.Withheld and Shown may be set
	// Messages may have Shown set: the time shown that the inputs to come are stamped with; Delay; and Tick,
	// while a message of that tick is handled. It is nil if the schema has neither messages nor inputs. Once it is
	// Closed, no message is handed over.
	Messages *message.ClientMessages
	// Fail ends the client's connection for good: Frame returns the error, until Reconnect.
	Fail     func(why error)
	Attached *[]func(dt time.Duration) // what Frame calls, on its goroutine, before it asks for inputs and sends
	Ending   *[]func()                 // what Close and Detach call before they change the world
	Watchers *Watchers
	// Received has functions that Receive calls with each packet and its error. They must not keep the packet.
	Received *[]func(packet []byte, err error)
	// Resume begins the session that a welcome offers, whoever asked for it. If it continues the present one, nothing
	// that is held is forgotten, and what is shown goes on.
	Resume func(welcome []byte, continues bool) error
	// Complete notes that everything has arrived that existed when the session began.
	Complete func()
}

// Mirrored is what a replication.Replica in a world has in it.
type Mirrored = apply.Mirrored

// OfClient returns the inside of a *replication.Client. It panics if there is none. Importing package
// replication sets it.
var OfClient func(client any) *Client
