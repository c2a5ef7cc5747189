package netsim

// Stats counts what happened on a [Pipe] since it was made. Except where noted it counts packets.
// At any moment
//
//	Sent + Duplicated = Delivered + Lost + Outage + Dropped + Pipe.Pending()
type Stats struct {
	Sent       uint64 // accepted by Send
	Delivered  uint64 // given to the receiver, copies included
	Lost       uint64 // lost to Config.Loss
	Outage     uint64 // lost to Config.Burst
	Dropped    uint64 // refused by a full queue or a full pipe
	Duplicated uint64 // copies made
	Corrupted  uint64 // damaged, copies included

	// Reordered counts packets and copies that were delivered after one that
	// had been sent later: the criterion of RFC 4737, section 3.3.
	Reordered uint64

	SentBytes      uint64 // in the packets accepted by Send
	DeliveredBytes uint64 // as delivered: copied, cut short, extended
}

func (s *Stats) add(t Stats) {
	s.Sent += t.Sent
	s.Delivered += t.Delivered
	s.Lost += t.Lost
	s.Outage += t.Outage
	s.Dropped += t.Dropped
	s.Duplicated += t.Duplicated
	s.Corrupted += t.Corrupted
	s.Reordered += t.Reordered
	s.SentBytes += t.SentBytes
	s.DeliveredBytes += t.DeliveredBytes
}
