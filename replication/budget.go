package replication

import (
	"fmt"

	"github.com/arche-replicate/arche-replicate/replication/internal/sender"
	"github.com/mlange-42/arche/ecs"
)

// SetBudget limits the state packets to the peer to so many bytes per second, counting
// what the send function gets; 0 lifts the limit. Messages are sent all the same, and what
// they take is missing for the state. A second is as many ticks as
// [WithTickRate] says. What was saved up may be sent at once, up to the bytes of an
// eighth of a second, or of the ticks between two sends if these are longer, and two
// packets: in no span of time is more than that sent beyond the rate.
//
// Panics if the number is negative.
func (p *Peer) SetBudget(bytesPerSecond int) {
	p.mustExist()
	if bytesPerSecond < 0 {
		panic(fmt.Sprintf("replication: SetBudget(%d): use bytes per second, or 0 for no limit", bytesPerSecond))
	}
	p.out.Budget.Set(int64(bytesPerSecond))
	p.out.Budget.Control = nil
}

// SetBudgetRange makes the budget adapt to what the path to the client carries, between least and most bytes per second. It
// counts as [Peer.SetBudget] does, and replaces what that has set; a call of SetBudget ends it. [PeerStats.Budget] is the budget of
// now.
//
// The budget begins with least, rises by half of itself every fifth of a second until the path is busy, and then follows it: it
// falls when round trips get longer or a tenth of the packets are lost, and rises while neither happens and the game needs it.
// It learns from acknowledgements alone: a client that acknowledges what it did not get can raise it, up to most, and one that
// acknowledges nothing is soon sent least. It begins anew with each session.
//
// What is saved up is less than with a fixed budget: the bytes between two sends and two packets.
//
// Panics if least is less than 1 or more than most.
func (p *Peer) SetBudgetRange(least, most int) {
	p.mustExist()
	if least < 1 || most < least {
		panic(fmt.Sprintf("replication: SetBudgetRange(%d, %d): use bytes per second, from 1 up, the smaller number first", least, most))
	}
	b, from, to := &p.out.Budget, min(int64(least), sender.MaxRate), min(int64(most), sender.MaxRate)
	if b.Control == nil {
		b.Control = sender.NewRateControl(from, to, p.server.opts.TickRate, p.server.snap.Tick)
	}
	b.Control.Within(from, to)
	b.Set(b.Control.Budget())
}

// SetPriority makes the peer call weigh in ticks in which its budget does not suffice, on
// the goroutine that calls Replicate: it gets the entities that wait for being sent and
// their weights so far, and may change the weights, for instance by distance. What is
// sent first is what has the largest sum of weights, added up over the ticks it waited.
// Weights count in sixteenths, and up to 255. What an entity has
// under a condition waits by itself, so entities may come up more than once. An entity of
// weight 0 or less is sent when there is room for all others. nil ends that.
//
// weigh must not change the world, nor keep the slices.
func (p *Peer) SetPriority(weigh func(entities []ecs.Entity, weights []float32)) {
	p.mustExist()
	p.out.Weigh = weigh
}
