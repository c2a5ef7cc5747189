package replication

import (
	"fmt"
	"math"
	"slices"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/exclusive"
	"github.com/arche-replicate/arche-replicate/replication/internal/interest"
	"github.com/arche-replicate/arche-replicate/replication/internal/ratecontrol"
	"github.com/arche-replicate/arche-replicate/replication/internal/sender"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// SetInterest sets what the peer may see, from the next Replicate on.
//
// Panics if the grid or a set is of another server, if the grid's number of fields is not the number of coordinates
// from [Peer.LookFrom], if a set is nil, if the filter is a nil pointer, or if the margin is negative or has no grid.
func (p *Peer) SetInterest(i Interest) {
	defer p.guard().Leave(p.guard().Enter(exclusive.SetInterest))
	if i.Grid != nil && i.Grid.server != p.server {
		panic("replication: a grid of another server: make one with this server's NewGrid")
	}
	for n, set := range i.Sets {
		if set == nil {
			panic(fmt.Sprintf("replication: entity set %d is nil: leave it out, or make one with NewEntitySet", n+1))
		}
		if set.server != p.server {
			panic("replication: an entity set of another server: make one with this server's NewEntitySet")
		}
	}
	if looks := p.sight.View.Viewpoint.Axes; i.Grid != nil && looks != 0 && looks != len(i.Grid.in.Columns) {
		panic(fmt.Sprintf("replication: a grid over %s for a peer that looks from a place of %s: call "+
			"SetInterest without the grid, then LookFrom "+
			"with as many as the grid has fields, then SetInterest with "+
			"it", count(len(i.Grid.in.Columns), "field"), count(looks, "coordinate")))
	}
	if i.Filter != nil && isNil(i.Filter) {
		panic(fmt.Sprintf("replication: the filter of the Interest is a nil %T: leave Filter out to show "+
			"all", i.Filter))
	}
	if !(i.Margin >= 0 && i.Margin <= math.MaxFloat32) || i.Margin > 0 && i.Grid == nil {
		panic(fmt.Sprintf("replication: a margin of %v: use 0 or more, in the units of the fields of the Interest's "+
			"grid", i.Margin))
	}
	c := interest.Criteria{Filter: i.Filter, Visible: i.Visible, Keep: i.Keep, Margin: float32(i.Margin)}
	if i.Grid != nil {
		c.Grid = &i.Grid.in
	}
	for _, set := range i.Sets {
		c.Sets = append(c.Sets, &set.in)
	}
	p.sight.SetCriteria(c)
}

// LookFrom sets where the peer looks from, for the grid in its [Interest]: it sees entities at most radius away, in the
// units of the grid's fields. The place has one coordinate for each field, in their order. An infinite radius shows
// everything. Until LookFrom is called, the peer sees no entity with a position, and [PeerStats.NoViewpoint] counts the
// ticks.
//
// Panics if the radius is negative or not a number, if a coordinate is not a number, or if there are not as many as the
// grid has fields; without a grid, if there are none or more than three.
func (p *Peer) LookFrom(radius float64, place ...float64) {
	defer p.guard().Leave(p.guard().Enter(exclusive.LookFrom))
	if !(radius >= 0) || len(place) == 0 || len(place) > interest.MaxAxes {
		panic(fmt.Sprintf("replication: LookFrom(%v, %v): use a radius of 0 or more and one to three "+
			"coordinates", radius, slices.Clone(place))) // a copy, so that calls allocate nothing
	}
	if g := p.sight.View.Grid; g != nil && len(place) != len(g.Columns) {
		panic(fmt.Sprintf("replication: LookFrom a place of %s, and the grid of the peer's Interest is over "+
			"%s: give one for each field",
			count(len(place), "coordinate"), count(len(g.Columns), "field")))
	}
	e := interest.Viewpoint{Radius: radius, Axes: len(place)}
	for i, v := range place {
		if math.IsNaN(v) {
			panic("replication: LookFrom a place that is not a number: use one to three coordinates in the " +
				"units of the grid's fields")
		}
		e.At[i] = v
	}
	p.sight.View.Viewpoint = e
}

// count returns a number with its unit.
func count(n int, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return fmt.Sprintf("%d %ss", n, of)
}

// SetBudget limits the state packets to the peer to so many bytes per second, counting what the send function gets; 0
// lifts the limit. Messages are sent regardless, and their bytes are taken from those for state, of which a quarter
// remains. A second is as many ticks as the rate of [WithTickRate]. At most the bytes of an eighth of a second, or of
// the ticks between two sends if these are longer, and two packets are saved up and may be sent at once.
//
// Panics if the number is negative.
func (p *Peer) SetBudget(bytesPerSecond int) {
	defer p.guard().Leave(p.guard().Enter(exclusive.SetBudget))
	if bytesPerSecond < 0 {
		panic(fmt.Sprintf("replication: SetBudget(%d): use bytes per second, or 0 for no limit", bytesPerSecond))
	}
	p.out.Budget.Set(int64(bytesPerSecond))
	p.out.Budget.Control = nil
}

// SetBudgetRange makes the budget of [Peer.SetBudget] adapt to what the path to the client carries, between least and
// most bytes per second, until SetBudget is called. [PeerStats.Budget] is the present budget.
//
// The budget begins with least in each session and rises until the path is busy. It falls when round trips get longer
// or a tenth of the packets are lost. A client that acknowledges what it did not get can raise it, up to most.
//
// Only the bytes between two sends and two packets are saved up.
//
// Panics if least is less than 1 or more than most.
func (p *Peer) SetBudgetRange(least, most int) {
	defer p.guard().Leave(p.guard().Enter(exclusive.SetBudgetRange))
	if least < 1 || most < least {
		panic(fmt.Sprintf("replication: SetBudgetRange(%d, %d): use bytes per second, from 1 up, the smaller "+
			"number first", least, most))
	}
	b, from, to := &p.out.Budget, min(int64(least), sender.MaxRate), min(int64(most), sender.MaxRate)
	if b.Control == nil {
		b.Control = ratecontrol.New(from, to, p.server.opts.TickRate, p.server.snap.Tick)
	}
	b.Control.Within(from, to)
	b.Set(b.Control.Budget())
}

// SetPriorityFunc makes Replicate call weigh in ticks in which the peer's budget does not suffice: weigh gets the
// entities that wait to be sent and their weights so far (see [Priority]), and may change the weights, for instance by
// distance. Weights count in sixteenths, and up to 255; an entity of weight 0 or less is sent when there is room for
// all others. An entity may be passed more than once, since components under a condition wait by themselves. nil ends
// that.
//
// weigh must not change the world, the server or its peers, nor keep the slices.
func (p *Peer) SetPriorityFunc(weigh func(entities []ecs.Entity, weights []float32)) {
	defer p.guard().Leave(p.guard().Enter(exclusive.SetPriorityFunc))
	p.out.Selector.Weigh = weigh
}

// SetSendInterval makes the server send state to the peer on every n-th tick only, from the next [Server.Replicate] on;
// the default is 1. Peers with the same interval take turns.
//
// Change it for seconds, not from tick to tick: around a change a gap may be as long as both intervals.
//
// Panics if n is not 1 to 60.
func (p *Peer) SetSendInterval(n int) {
	defer p.guard().Leave(p.guard().Enter(exclusive.SetSendInterval))
	if n < 1 || n > wire.MaxInterval {
		panic(fmt.Sprintf("replication: a send interval of %d ticks: use 1 to %d", n, wire.MaxInterval))
	}
	p.acked.SetInterval(delta.Tick(n))
}
