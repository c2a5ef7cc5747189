package encode

import (
	"iter"

	"github.com/arche-replicate/arche-replicate/replication/internal/ackstate"
)

// Sources are the packet sets that a peer is sent the parts of what changed in its send interval from.
type Sources struct {
	parts []source
}

// A source is that of one part.
type source struct {
	set   int32 // NoSet: there is none
	lacks bool  // the peer lacks baselines of a few slots
}

// fewLacking is the share of what changed in a part of which a peer may lack the baselines, a divisor. If it lacks
// more, older baselines take fewer bytes.
const fewLacking = 4

// A Run is packets in a row that a peer is sent from a set.
type Run struct {
	Set     *PacketSet
	Packets []SharedPacket
	Part    int  // of the first packet
	Lacks   bool // the peer lacks baselines of some slots; all packets are of one part
}

// Choose chooses the sets for a peer, adds them, and asks them for the parts. For each part it is that of the first
// pair of baselines as of which the peer holds all of the part, or most of it. It returns the set with the baselines
// that the peer is likely to have, or NoSet.
func (s *Sources) Choose(sets *PacketSets, p *ackstate.Tracker, holdsAll bool) (likely int32) {
	s.parts = s.parts[:0]
	parts := sets.parts.of(p.Period, p.Likely, sets.tick)
	if likely = sets.add(p.Likely, p.Period, parts); likely == NoSet {
		return NoSet
	}
	sets.List[likely].peers++
	first := source{set: likely}
	if !holdsAll {
		first.set = NoSet
	}
	for range parts.len() {
		s.parts = append(s.parts, first)
	}
	if !holdsAll {
		s.chooseHeld(sets, parts, p)
	}
	for part, from := range s.parts {
		if from.set == NoSet {
			from.set = likely // of which the peer copies what it can
		}
		sets.List[from.set].wantPart(part, &p.Snap.Slots)
	}
	return likely
}

// chooseHeld chooses the sets for a peer that does not hold all. It finds the peer's pairs of baselines.
func (s *Sources) chooseHeld(sets *PacketSets, parts *partition, p *ackstate.Tracker) {
	p.FindPairs()
	left := len(s.parts)
	for _, of := range p.Pairs {
		if left == 0 {
			return
		}
		gaps, ok := p.Shares(of)
		if !ok {
			continue
		}
		for part := range s.parts {
			from := &s.parts[part]
			if from.set != NoSet {
				continue
			}
			if lacking, all := p.LackIn(parts.slots(part), of, gaps); lacking*fewLacking <= all {
				if *from = (source{sets.add(of, p.Period, parts), lacking > 0}); from.set != NoSet {
					left--
				}
			}
		}
	}
}

// Runs returns the packets of the sets that were chosen, once these are filled.
func (s *Sources) Runs(sets *PacketSets) iter.Seq[Run] {
	return func(yield func(Run) bool) {
		for part := 0; part < len(s.parts); {
			first, from := part, s.parts[part]
			for part++; part < len(s.parts) && !from.lacks && s.parts[part] == from; {
				part++
			}
			if from.set == NoSet {
				continue
			}
			set := &sets.List[from.set]
			if !yield(Run{set, set.packetsOf(first, part), first, from.lacks}) {
				return
			}
		}
	}
}

// Count returns how many packets these are, and whether they have all that changed in the send interval.
func (s *Sources) Count(sets *PacketSets) (packets int, all bool) {
	all = true
	for _, from := range s.parts {
		all = all && from.set != NoSet
	}
	for run := range s.Runs(sets) {
		packets += len(run.Packets)
		all = all && !run.Lacks && run.Set.missing == 0
	}
	return packets, all
}
