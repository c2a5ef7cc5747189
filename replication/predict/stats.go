package predict

// Stats are counters of a [Predictor] since it was attached, unless they are counts of now.
type Stats struct {
	Predicted int // entities that are simulated now, and those that are parked
	Parked    int // of these
	Depth     int // ticks that the client is ahead of the newest state of what it predicts, the least ahead

	Rollbacks uint64 // frames in which ticks were simulated again since something was wrong
	Deepest   int    // the most ticks that one of them went back
	Ticks     uint64 // simulated for the first time
	Again     uint64 // simulated again
	Skips     uint64 // times that more ticks passed at once than are kept; those before were left out
	TooOld    uint64 // states that were known only for ticks which are not kept any more

	Missed      uint64 // inputs that the server did not have in time
	Spawns      uint64 // entities that steps have spawned here
	Refused     uint64 // of these, removed since the server has not spawned them
	Effects     uint64 // begun
	Cancelled   uint64 // of these
	Corrections uint64 // of values that are drawn
	Snaps       uint64 // of these, too far to be smoothed
	Causes      Causes
}

// Causes are what made rollbacks necessary. There may be several for one.
type Causes struct {
	Inputs     uint64           // the server simulated ticks without their inputs
	Lifetimes  uint64           // something was there or was not
	Components []ComponentCause // whose values differed
}

// A ComponentCause is how often the server's value of a component differed from the predicted one, per entity and
// state.
type ComponentCause struct {
	Name  string
	Count uint64
}

// readStats returns the counters.
func readStats(s *simulation) Stats {
	s.stats.Predicted, s.stats.Parked, s.stats.Depth = 0, 0, 0
	s.stats.Causes.Components = s.stats.Causes.Components[:0]
	for i := range s.rows {
		if r := &s.rows[i]; !r.entity.IsZero() {
			s.stats.Predicted++
			if r.parked {
				s.stats.Parked++
			}
		}
	}
	for i := range s.known {
		if k := s.known[i]; k.any && !s.rows[i/len(s.groups)].entity.IsZero() && !s.rows[i/len(s.groups)].named {
			if depth := int(int32(s.newest - k.tick)); s.stats.Depth == 0 || depth < s.stats.Depth {
				s.stats.Depth = depth
			}
		}
	}
	for _, c := range s.columns {
		h := c.inside()
		s.stats.Causes.Components = append(s.stats.Causes.Components, ComponentCause{h.comp.Name, h.causes})
	}
	return s.stats
}
