package main

import (
	"math"
	"time"

	"github.com/arche-replicate/arche-replicate/replication"
)

// meter adds up the costs of the measured ticks. The library's counters run from its beginning, so
// their values at the first of these ticks are subtracted.
type meter struct {
	ticks              int64
	rawBits            float64
	encoding, decoding time.Duration // decoding of all clients

	before, after counters
	entitiesMax   int // over all ticks, not only the measured ones
}

// counters are sums over all peers.
type counters struct {
	packets, bytes, entityBits uint64
	sent                       uint64 // entities, as deltas or in full
	clamped                    uint64
	fields                     []replication.FieldStats
}

func (p *replay) count() counters {
	stats := p.server.Stats()
	c := counters{clamped: stats.Clamped, fields: stats.Fields}
	for _, m := range p.mirrors {
		s := m.peer.Stats()
		c.packets += s.Packets
		c.bytes += s.Bytes
		c.entityBits += s.EntityBits
		c.sent += s.Updates + s.FullStates + s.KeyframeFallbacks
	}
	return c
}

// start starts measuring again, before a tick.
func (m *meter) start(p *replay) {
	*m = meter{before: p.count(), entitiesMax: m.entitiesMax}
}

// tick adds a tick that has been played.
func (m *meter) tick(p *replay, encoding, decoding time.Duration) {
	m.ticks++
	m.rawBits += float64(p.server.Stats().RawBits)
	m.encoding += encoding
	m.decoding += decoding
	m.entitiesMax = max(m.entitiesMax, len(p.oracle.lives))
}

// stop reads the counters at the end, after a tick.
func (m *meter) stop(p *replay) { m.after = p.count() }

// report summarises the run.
func (p *replay) report(ticks int64, converged bool) report {
	m := &p.meter
	peers := float64(len(p.mirrors))
	perTick := 1 / float64(m.ticks)
	perPeerTick := perTick / peers
	r := report{
		Ticks:              ticks,
		EntitiesMax:        m.entitiesMax,
		Packets:            int64(math.Round(float64(m.after.packets-m.before.packets) / peers)),
		BytesPerTick:       float64(m.after.bytes-m.before.bytes) * perPeerTick,
		EntityBytesPerTick: float64(m.after.entityBits-m.before.entityBits) / 8 * perPeerTick,
		RawBytesPerTick:    m.rawBits / 8 * perTick,
		EncodeNsPerTick:    float64(m.encoding.Nanoseconds()) * perTick,
		DecodeNsPerTick:    float64(m.decoding.Nanoseconds()) * perPeerTick,
		Converged:          converged,
		Mismatches:         p.faults.count,
		Clamped:            m.after.clamped,
		sentPerTick:        float64(m.after.sent-m.before.sent) * perPeerTick,
		described:          p.faults.first,
	}
	r.KbitPerSecond = r.BytesPerTick * 8 * p.trace.rate / 1000
	for i := range m.after.fields {
		f := &m.after.fields[i]
		r.Fields = append(r.Fields, fieldReport{f.Name(), float64(f.Bits-m.before.fields[i].Bits) * perPeerTick})
	}
	for _, mirror := range p.mirrors {
		r.MissingBaselines += mirror.client.Stats().MissingBaselines
		r.MissingModels += mirror.client.Stats().MissingModels
	}
	return r
}
