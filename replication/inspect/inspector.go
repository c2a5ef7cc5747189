package inspect

import (
	"sync"
	"time"

	"github.com/arche-replicate/arche-replicate/replication/internal/seam"
	"github.com/arche-replicate/arche-replicate/replication/interpolation"
	"github.com/arche-replicate/arche-replicate/replication/predict"
)

const (
	interval = 250 * time.Millisecond // from sample to sample
	patience = time.Second            // for how long readers may postpone a sample
)

// An Inspector keeps the last 60 seconds of a server or client; [Server] and [Client] attach one. Its methods may be
// called on any goroutine, but for Close.
type Inspector struct {
	now      func() time.Time
	watchers *seam.Watchers // nil: closed
	name     string
	mtu      int // of the classes of packets

	// Of the goroutine of the server or client.
	begin time.Time // of the Replicate, Frame or Receive that runs
	from  time.Time // of the sample to come
	since tally     // from

	mu      sync.Mutex
	end     end
	started time.Time
	values  record
	total   tally // until the latest sample
}

// An end is a server or client that is inspected.
type end interface {
	// sample reads the counters, and sets a row of the values at a time.
	sample(row []float32, at int64, t *tally, seconds float64)
	appendJSON(e *encoder, since int64, v *record, peer int)
}

// A tally is what happened in a time.
type tally struct {
	steps          uint64 // Replicates or Frames
	busy, longest  time.Duration
	receive        time.Duration // in Client.Receive
	sent, received packets
}

// add adds what happened later.
func (t *tally) add(o *tally) {
	t.steps += o.steps
	t.busy += o.busy
	t.longest = max(t.longest, o.longest)
	t.receive += o.receive
	t.sent.add(&o.sent)
	t.received.add(&o.received)
}

// packets are counted with their sizes.
type packets struct {
	number, bytes uint64
	largest       int
	classes       [classes]uint64 // by size
}

// classes are sizes of packets: sixteenths of the MTU, and all that is larger.
const classes = 17

func (p *packets) count(bytes, mtu int) {
	p.number++
	p.bytes += uint64(bytes)
	p.largest = max(p.largest, bytes)
	p.classes[min((max(bytes, 1)*(classes-1)+mtu-1)/mtu-1, classes-1)]++
}

func (p *packets) add(o *packets) {
	p.number += o.number
	p.bytes += o.bytes
	p.largest = max(p.largest, o.largest)
	for i, n := range o.classes {
		p.classes[i] += n
	}
}

// An Option configures an [Inspector].
type Option func(*settings)

type settings struct {
	name          string
	peers         int
	interpolation *interpolation.Interpolation
	prediction    *predict.Predictor
}

// WithName sets the title of the page, such as the name of a match.
func WithName(name string) Option { return func(s *settings) { s.name = name } }

// WithPeers sets how many peers the inspector of a server shows one by one, in the table and in metrics: 256 by
// default. Each takes about 12 kB. Those beyond count in the sums only. Panics if n is negative.
func WithPeers(n int) Option {
	if n < 0 {
		panic("inspect: WithPeers of a negative number: use 0 to show none")
	}
	return func(s *settings) { s.peers = n }
}

// WithInterpolation adds the play-out delay and the starved frames of a client's interpolation. Panics if p is nil.
func WithInterpolation(p *interpolation.Interpolation) Option {
	if p == nil {
		panic("inspect: WithInterpolation of nil: interpolation.Attach returns one")
	}
	return func(s *settings) { s.interpolation = p }
}

// WithPrediction adds the rollbacks of a client's predictions, their depth and their causes, corrections of what is
// drawn, and inputs that the server did not have in time. Panics if p is nil.
func WithPrediction(p *predict.Predictor) Option {
	if p == nil {
		panic("inspect: WithPrediction of nil: predict.Attach returns a Predictor")
	}
	return func(s *settings) { s.prediction = p }
}

func apply(opts []Option) settings {
	s := settings{peers: 256}
	for _, opt := range opts {
		if opt == nil {
			panic("inspect: an option is nil: leave it out")
		}
		opt(&s)
	}
	return s
}

// attach returns an inspector that watches.
func attach(e end, values record, watchers *seam.Watchers, mtu int, o *settings) *Inspector {
	s := &Inspector{now: time.Now, watchers: watchers, name: o.name, mtu: mtu, end: e, values: values}
	s.started = s.now()
	s.from = s.started
	*watchers = append(*watchers, (*watching)(s))
	return s
}

// Close detaches the inspector from its server or client; what it has stays readable. Call it on their goroutine, not
// in their hooks. It may be called again.
func (s *Inspector) Close() {
	if s.watchers == nil {
		return
	}
	*s.watchers, s.watchers = s.watchers.Without((*watching)(s)), nil
}

// watching is the inspector as its server or client sees it.
type watching Inspector

// Note is called at each moment, on the goroutine of the server or client.
func (w *watching) Note(at seam.Moment, bytes int) {
	s := (*Inspector)(w)
	switch at {
	case seam.Sent:
		s.since.sent.count(bytes, s.mtu)
	case seam.ReplicateBegins, seam.FrameBegins:
		s.begin = s.now()
	case seam.ReceiveBegins:
		s.since.received.count(bytes, s.mtu)
		s.begin = s.now()
	case seam.ReceiveEnds:
		s.since.receive += s.now().Sub(s.begin)
	case seam.ReplicateEnds, seam.FrameEnds:
		if s.begin.IsZero() {
			return // it panicked before it began
		}
		now := s.now()
		took := now.Sub(s.begin)
		s.since.steps++
		s.since.busy += took
		s.since.longest = max(s.since.longest, took)
		s.begin = time.Time{}
		if now.Sub(s.from) >= interval {
			s.sample(now)
		}
	}
}

// sample takes a sample, unless somebody reads just now.
func (s *Inspector) sample(now time.Time) {
	if !s.mu.TryLock() {
		if now.Sub(s.from) < interval+patience {
			return
		}
		s.mu.Lock()
	}
	defer s.mu.Unlock()
	v := &s.values
	s.end.sample(v.begin(), v.n, &s.since, now.Sub(s.from).Seconds())
	v.row[0] = float32(now.Sub(s.started).Seconds())
	v.put(v.n)
	v.n++
	s.total.add(&s.since)
	s.from, s.since = now, tally{}
}

// down returns the packets from the server to clients.
func (s *Inspector) down() *packets {
	if s.total.received.number > 0 { // by a client: servers don't count them
		return &s.total.received
	}
	return &s.total.sent
}

// AppendJSON appends what the page draws to dst and returns it: the samples from number since on, as far as they are
// kept, the counters, and the peers of a server. An answer has the number of the next sample as "next", to be given as
// since next time; 0 asks for all. Of the peer with the number peer, see [PeerNumber], it has everything; -1
// asks for none. docs/observability.md describes the fields.
func (s *Inspector) AppendJSON(dst []byte, since int64, peer int) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := encoder{b: dst}
	e.object()
	e.key("name").text(s.name)
	e.key("interval").integer(int64(interval / time.Millisecond))
	if since > s.values.n {
		since = 0 // of another inspector
	}
	s.end.appendJSON(&e, since, &s.values, peer)
	e.key("sizes").array()
	for _, n := range s.down().classes {
		e.count(n)
	}
	e.closeArray()
	s.values.appendJSON(&e, since, s.values.n)
	e.close()
	return e.b
}
