package message

import "github.com/arche-replicate/arche-replicate/delta"

// Verdicts are what a client knows of the ticks that the server simulated without the client's input for them. They
// need config.ServerOptions.Verdicts at the server.
type Verdicts struct {
	Known    bool       // a report arrived in this session
	Tick     delta.Tick // of the newest report
	Reported uint64     // bit i: a report covered tick Tick-i
	Missed   uint64     // bit i: tick Tick-i had no input in time; what is set stays
	Count    uint32     // rises with each report that is newer, or has misses that were not known
}

// verdictTicks is the number of ticks that Verdicts have.
const verdictTicks = 64

// note takes the misses of a report, see [wire.InputReport].
func (v *Verdicts) note(tick delta.Tick, misses uint32) {
	reported, missed := uint64(1<<32-1), uint64(misses)
	ahead := int32(tick - v.Tick)
	switch {
	case !v.Known:
		*v = Verdicts{Known: true, Tick: tick}
	case ahead > 0:
		v.Reported, v.Missed, v.Tick = v.Reported<<ahead, v.Missed<<ahead, tick
	case ahead > -verdictTicks:
		reported, missed = reported<<-ahead, missed<<-ahead
		if missed&^v.Missed == 0 {
			v.Reported |= reported
			return
		}
	default:
		return
	}
	v.Reported, v.Missed, v.Count = v.Reported|reported, v.Missed|missed, v.Count+1
}
