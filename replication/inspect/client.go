package inspect

import (
	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/seam"
	"github.com/arche-replicate/arche-replicate/replication/interpolation"
	"github.com/arche-replicate/arche-replicate/replication/predict"
)

// What a client's samples have, before the bandwidth of states in kbit/s.
const (
	cTime        = iota // seconds since the inspector was attached
	cBandwidth          // kbit/s received: everything
	cUp                 // kbit/s sent
	cPackets            // per second
	cSize               // bytes of a packet, mean
	cLargest            // bytes
	cRoundTrip          // ms
	cJitter             // ms
	cLoss               // percent, over 10 s
	cAge                // ticks from the newest baseline to the newest packet
	cDelay              // ms, of interpolation
	cStarved            // frames, in the sample
	cFrames             // per second
	cWork               // µs of a Frame, mean
	cLongest            // µs of the longest
	cReceive            // µs of a Receive, mean
	cEntities           // in the world
	cRollbacks          // of predictions, in the sample
	cAgain              // ticks that were simulated again, in the sample
	cCorrections        // in the sample
	cMissed             // inputs that the server did not have in time, in the sample
	cDepth              // ticks that predictions are ahead of the newest state
	clientKeys
)

var clientNames = [clientKeys]string{
	"time", "bandwidth", "up", "packets", "size", "largest", "roundTrip", "jitter", "loss", "age", "delay", "starved",
	"ticks", "work", "longest", "receive", "entities", "rollbacks", "again", "corrections", "missed", "depth",
}

// client is the inspected client.
type client struct {
	client   *replication.Client
	in       *seam.Client
	shows    *interpolation.Interpolation // nil: none
	predicts *predict.Predictor           // the same
	before   predict.Stats
	stats    replication.ClientStats
	starved  uint64
	sequence uint32 // of the newest packet
	outcome  losses
	tick     replication.Tick
	settled  replication.Tick
	status   replication.Status
	rate     int
}

// Client attaches an inspector to a client. Call it on the client's goroutine, not in its hooks. Panics if there is no
// client.
func Client(c *replication.Client, opts ...Option) *Inspector {
	o := apply(opts)
	e := &client{client: c, in: seam.OfClient(c), shows: o.interpolation, predicts: o.prediction, stats: c.Stats()}
	e.sequence = e.in.Recv.Window.Newest
	const usual = 1200 // for the classes of packets: the MTU of the path is not known here
	return attach(e, newRecord(clientNames[:], 1), e.in.Watchers, usual, &o)
}

func (e *client) sample(row []float32, at int64, t *tally, seconds float64) {
	before := e.stats
	e.stats = e.client.Stats()
	e.tick, e.status = e.client.Tick(), e.client.Status()
	e.rate = e.client.TickRate()
	e.settled, _ = e.client.Settled()
	kbits := func(bytes uint64) float32 { return float32(float64(bytes) * 8 / seconds / 1000) }
	row[cBandwidth], row[cUp] = kbits(t.received.bytes), kbits(t.sent.bytes)
	row[cPackets] = float32(float64(t.received.number) / seconds)
	if n := t.received.number; n > 0 {
		row[cSize] = float32(float64(t.received.bytes) / float64(n))
		row[cLargest] = float32(t.received.largest)
		row[cReceive] = micros(t.receive) / float32(n)
	}
	if e.stats.RoundTrip > 0 {
		row[cRoundTrip] = millis(e.stats.RoundTrip)
	}
	if e.stats.Packets > 0 {
		row[cJitter] = millis(e.stats.Jitter)
	}
	sequence := e.in.Recv.Window.Newest
	came := e.stats.Packets - before.Packets
	sent := uint64(max(int32(sequence-e.sequence), 0))
	if e.stats.Sessions != before.Sessions {
		came, sent = 0, 0 // another session counts anew
	}
	e.sequence = sequence
	row[cLoss] = e.outcome.add(at, came, max(sent, came)-came)
	if age, known := e.in.Recv.BaselineAge(); known {
		row[cAge] = float32(age)
	}
	e.sampleInterpolation(row)
	e.samplePrediction(row)
	row[cFrames] = float32(float64(t.steps) / seconds)
	row[cWork], row[cLongest] = micros(t.busy)/float32(max(t.steps, 1)), micros(t.longest)
	row[cEntities] = float32(e.stats.Spawns - e.stats.Despawns)
	row[clientKeys] = kbits(e.stats.Bytes - before.Bytes)
}

func (e *client) sampleInterpolation(row []float32) {
	if e.shows == nil {
		return
	}
	stats := e.shows.Stats()
	if stats.Frames > 0 {
		row[cDelay] = millis(stats.Delay)
	}
	row[cStarved] = float32(stats.Starved - e.starved)
	e.starved = stats.Starved
}

func (e *client) samplePrediction(row []float32) {
	if e.predicts == nil {
		return
	}
	b := e.before
	s := e.predicts.Stats()
	row[cRollbacks], row[cAgain] = float32(s.Rollbacks-b.Rollbacks), float32(s.Again-b.Again)
	row[cCorrections], row[cMissed] = float32(s.Corrections-b.Corrections), float32(s.Missed-b.Missed)
	if s.Predicted > 0 {
		row[cDepth] = float32(s.Depth)
	}
	s.Causes.Components = append(b.Causes.Components[:0], s.Causes.Components...) // it is valid until the next call
	e.before = s
}
