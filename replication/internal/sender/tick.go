package sender

import (
	"math"

	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/encode"
)

// This file is the course of a tick for one peer: prepare finds what is dirty and plans what to
// send, sendPlanned sends it, and end draws the conclusions.

// A plan is what a peer is sent in a tick.
type plan uint8

const (
	sendNothing plan = iota
	sendAll          // everything dirty
	sendBest         // the most urgent of it
)

// maxChoices bounds how often sendChosen chooses in a tick.
const maxChoices = 3

// prepare starts a tick. The chooser is that of the worker whose goroutine this is.
func (p *Sender) prepare(c *chooser) {
	p.loseFailed()
	p.acked.Settled.Begin(p.acked)
	p.acked.Grow()
	p.sight.Limit()
	p.Budget.earn()
	p.beginSilence()
	p.acked.Follow()
	p.acked.ChooseLikely()
	p.acked.NoteAllChurn()
	p.planned, p.Relays = sendNothing, false
	inOrder := p.acked.FindPeriod() && !p.states.stopped() && p.Budget.ample()
	if p.Rests = !p.HasMessages && p.acked.MayRest(); p.Rests {
		p.rest()
		return
	}
	p.states.packetSet = encode.NoSet
	p.acked.Expire()
	p.acked.Look()
	if p.Sending {
		p.markLacking()
	}
	if p.splits = inOrder && p.acked.Splits(); inOrder && !p.narrow {
		p.Relays, p.holdsAll = p.acked.CanRelay(p.splits)
	}
	if p.Relays {
		p.planned = sendAll
	} else {
		p.acked.FindPairs()
		if p.sight.View.InView == nil { // else Look has marked what changed
			p.acked.MarkChanged()
		}
		if p.planned = p.plan(inOrder); p.planned == sendBest {
			p.Selector.press(c)
		}
	}
	p.Packet.begin()
}

// callsBack reports whether prepare calls functions of the user.
func (p *Sender) callsBack() bool { return p.sight.View.Visible != nil || p.Selector.Weigh != nil }

// beginSilence finds out whether the peer has stopped answering. A budget that adapts starts over
// after a long silence, since the packets may then take another path.
func (p *Sender) beginSilence() {
	if p.opts.NoSilence {
		return
	}
	p.acked.Silence.Begin(p.snap.Tick, p.acked.Log.Next, p.KeepAlive.quiet, p.acked.Patience())
	if p.acked.Silence.Mute {
		p.Budget.restart()
	}
}

// rest is the tick of a peer that needs nothing. The peer sees what it saw before, except for slots
// whose entity was spawned or despawned.
func (p *Sender) rest() {
	s := &p.snap.Slots
	if in := p.sight.View.InView; in != nil {
		for b := range s.ChurnedBlocks.All() {
			if b < len(in) {
				in[b] &^= s.Churned[b]
			}
		}
	}
	p.acked.Expire()
	p.acked.MarkChanged()
}

// markLacking marks everything dirty that the peer is not known to hold. A send function panicked
// in the last tick: slots may have been marked clean by then without being in a packet.
func (p *Sender) markLacking() {
	acks := &p.acked.Acks
	for b := range p.acked.Dirty {
		seen := p.sight.View.Sees(b, p.snap.Slots.Alive[b])
		p.acked.MarkDirty(b, seen&(acks.Behind(b)|p.acked.Large.In(b))|p.acked.Gone(b))
	}
	p.Sending = false
}

// plan decides how to spend the budget: everything dirty is sent at once if there is room for it.
// Otherwise the most urgent slots are sent as soon as there are tokens for a packet worth its
// header. inOrder reports whether it is known that there is room.
func (p *Sender) plan(inOrder bool) plan {
	switch {
	case !p.acked.MaySendNow():
		return sendNothing
	case p.Budget.Rate == 0 || inOrder:
		return sendAll
	}
	p.acked.FindLapsed(p.Budget.lapsing > 0)
	room, limit := p.Budget.affordable(), math.MaxInt
	saves := p.Budget.Tokens < p.Budget.quantum()
	if saves {
		limit = room
	}
	switch need := p.Budget.need(limit); {
	case need+need/2 <= room:
		return sendAll
	case saves:
		return sendNothing
	}
	return sendBest
}

// sendPlanned fills the packets of the present tick. If the plan is sendAll, the worker's packet sets are ready.
func (p *Sender) sendPlanned(c *worker) {
	p.states.worker, p.Packet.cache = c, &c.Cache
	p.Joining.send(c, p.planned == sendAll)
	switch p.planned {
	case sendAll:
		p.sendAll()
	case sendBest:
		p.sendChosen(&c.choice)
	}
}

// sendAll sends everything dirty, as shared packets as far as possible.
func (p *Sender) sendAll() {
	relayed := p.Relays && p.states.relay(p.splits)
	if relayed && !p.acked.AnyDirty() {
		return
	}
	if p.Relays {
		p.acked.FindPairs()
	}
	if p.Relays && !relayed {
		p.acked.MarkChanged()
	}
	p.Relays = false
	if !p.splits {
		p.sendDirty(p.Joining.ready(p.states.worker, p.acked.Dirty))
		return
	}
	p.sendDirty(p.Joining.ready(p.states.worker, p.acked.Period.Changed))
	if !p.states.stopped() {
		p.Packet.apart = true
		p.sendDirty(p.Joining.ready(p.states.worker, p.acked.Dirty))
		p.Packet.apart = false
	}
}

// sendDirty sends the dirty ones of some slots, groups first unless these had the last turn.
func (p *Sender) sendDirty(of bitset.Set) {
	switch {
	case p.groups.yields:
		p.sendUngrouped(of)
		p.groups.send(of)
	case p.groups.send(of):
		p.states.restart()
	default:
		p.sendUngrouped(of)
	}
}

// sendUngrouped sends the dirty ones of some slots that are in no group.
func (p *Sender) sendUngrouped(of bitset.Set) {
	p.groups.yields = p.groups.yields && p.Packet.blocked() // now they have their turn
	p.states.send(of)
}

// sendChosen sends the most urgent dirty slots that the budget allows. If the entries turn out to
// be smaller than estimated, it chooses again.
func (p *Sender) sendChosen(c *chooser) {
	if c.Waits = nil; p.Joining.holds {
		c.Waits = p.states.worker.waits
	}
	for range maxChoices {
		sent := p.acked.Log.Next
		p.Selector.choose(c, p.Budget.affordable(), p.Budget.cost, p.Budget.Rate, p.states.partsFirst)
		p.groups.complete(c.Chosen)
		p.sendDirty(c.Chosen)
		if p.acked.Log.Next == sent || p.states.stopped() || p.groups.behind != 0 || !p.Budget.affords(1) {
			return
		}
	}
}

// end ends the tick.
func (p *Sender) end() {
	once := p.planned == sendAll && len(p.interest.Groups.Blocks) == 0 // a group may take a slot again
	p.acked.EndPackets(p.Relays, once)
	if !p.Rests {
		p.Sending = false
		if p.Budget.Rate == 0 {
			p.Selector.drop()
		} else {
			p.Selector.wait()
			if p.acked.MaySendNow() {
				p.Budget.learn(p.planned == sendAll && !p.states.stopped() && !p.Joining.holds)
			}
		}
	}
	p.account()
}
