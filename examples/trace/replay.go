package main

import (
	"fmt"
	"io"
	"time"

	"github.com/arche-replicate/arche-replicate/replication"
)

// replay plays a trace.
type replay struct {
	cfg     config
	trace   *reader
	stage   *stage
	oracle  *oracle
	server  *replication.Server
	mirrors []*mirror
	faults  mismatches
	meter   meter
	rounds  []uint64 // numbers of the mirrors' latest checks

	// progress is called for every tick played. It may be nil.
	progress func(tick int64, live int)
}

// run plays a trace through a server and clients and reports the cost. The error is about the
// trace, in one sentence; wrong mirrors are not an error but counted in the report.
func run(cfg config, src io.Reader, progress func(tick int64, live int)) (report, error) {
	p, release, err := newReplay(cfg, src)
	if err != nil {
		return report{}, err
	}
	defer release()
	p.progress = progress
	ticks, err := p.play()
	if err != nil {
		return report{}, err
	}
	converged, err := p.heal(ticks)
	if err != nil {
		return report{}, err
	}
	return p.report(ticks, converged), nil
}

// newReplay opens a trace. The returned function releases it.
func newReplay(cfg config, src io.Reader) (*replay, func(), error) {
	trace, release, err := openRows(cfg, src)
	if err != nil {
		return nil, nil, err
	}
	trace.retag(cfg.retags)
	p, err := newReplayOf(cfg, trace)
	if err != nil {
		release()
		return nil, nil, err
	}
	return p, release, nil
}

// newReplayOf connects the clients and is ready for the first row.
func newReplayOf(cfg config, trace *reader, options ...replication.ServerOption) (*replay, error) {
	schema, err := buildSchema(trace.components)
	if err != nil {
		return nil, trace.faultAt(trace.typesLine, err)
	}
	switch other := cfg.tables != "" || cfg.tune; {
	case !other:
		cfg.tables = trace.tables
	case trace.tables != "":
		cfg.notes.add("%s: its own tables are not used", cfg.name())
	}
	if err := tuneSchema(schema, cfg.tables); err != nil {
		return nil, fmt.Errorf("-tables: %w", err)
	}
	p := &replay{
		cfg:    cfg,
		trace:  trace,
		stage:  newStage(trace.components),
		oracle: newOracle(schema, cfg.peers),
		rounds: make([]uint64, cfg.peers),
	}
	p.server = replication.NewServer(&p.stage.world, schema, append(options,
		replication.WithMTU(cfg.mtu),
		replication.WithSeed(cfg.seed),
		replication.WithTuning(replication.Tuning{Window: window(cfg.rtt)}))...)
	for i := range cfg.peers {
		p.mirrors = append(p.mirrors, newMirror(i, cfg.seed, cfg.peerCoding(), p.server, schema, trace.components,
			&p.faults))
	}
	if err := shakeHands(p.server, p.mirrors); err != nil {
		return nil, err
	}
	for _, m := range p.mirrors {
		cfg.weather(m.link, false, 1)
	}
	return p, nil
}

// window returns the library's default unless the round trip needs more.
func window(rtt int) int { return max(64, min(2*rtt+8, 120)) }

// checkEvery is the number of ticks after which everything is compared, not only what a client
// reports as changed.
const checkEvery = 64

// play plays the trace to its end, or to that of -ticks, and returns the number of its ticks.
func (p *replay) play() (int64, error) {
	err := p.trace.next()
	if err != nil {
		return 0, err
	}
	first := p.trace.tick
	for now := int64(0); ; now++ {
		p.receive(now)
		for err == nil && p.trace.tick == first+uint64(now) {
			p.stage.play(p.trace)
			p.oracle.note(p.trace, now)
			err = p.trace.next()
		}
		p.stage.settle()
		if err != nil && err != io.EOF {
			return 0, err
		}
		if now == 0 || now == int64(p.cfg.rtt)+1 {
			p.meter.start(p)
		}
		if err := p.tick(now, now%checkEvery == 0, true); err != nil {
			return 0, err
		}
		if p.progress != nil {
			p.progress(now, len(p.oracle.lives))
		}
		if err == io.EOF || p.cfg.over(uint64(now)+1) {
			p.meter.stop(p)
			return now + 1, nil
		}
	}
}

// receive gives the server the acknowledgements that arrived.
func (p *replay) receive(now int64) {
	for _, m := range p.mirrors {
		m.receive(now)
	}
}

// tick replicates the world, lets packets arrive, and compares.
func (p *replay) tick(now int64, thorough, measured bool) error {
	begin := time.Now()
	p.server.Replicate()
	encoding := time.Since(begin)
	p.oracle.captured(func(number uint64) (replication.NetID, bool) {
		return p.server.NetID(p.stage.actors[number])
	})

	var decoding time.Duration
	at := moment{now, uint32(p.server.Tick())}
	for i, m := range p.mirrors {
		took, err := m.see(now, tick)
		if err != nil {
			return err
		}
		decoding += took
		m.check(p.oracle, at, thorough)
		p.rounds[i] = m.round
		m.link.Step()
	}
	if thorough {
		p.oracle.forget(now, p.rounds)
	}
	if measured {
		p.meter.tick(p, encoding, decoding)
	}
	return nil
}

// healingTicks limits the quiet time after a trace in which the worlds must become equal: several
// round trips.
func (c *config) healingTicks() int64 { return 600 + 20*int64(c.rtt) }

// heal makes the links perfect and plays quiet ticks until all worlds are equal and stay so while
// everything in flight arrives. It reports whether they did.
func (p *replay) heal(now int64) (bool, error) {
	for _, m := range p.mirrors {
		p.cfg.weather(m.link, true, 1)
	}
	settled := int64(p.cfg.rtt) + heldBack + 1
	equalFor := int64(0)
	for end := now + p.cfg.healingTicks(); now < end && equalFor <= settled; now++ {
		p.receive(now)
		if err := p.tick(now, false, false); err != nil {
			return false, err
		}
		if equalFor++; !p.equal(now, false) {
			equalFor = 0
		}
	}
	return p.equal(now-1, true) && equalFor > settled, nil
}

// equal reports whether all mirrors show exactly the live entities, in their newest states. A
// thorough check compares every value once more.
func (p *replay) equal(now int64, thorough bool) bool {
	equal := true
	for _, m := range p.mirrors {
		wrong := p.faults.count
		count := m.check(p.oracle, moment{now, uint32(p.server.Tick())}, thorough)
		equal = equal && p.faults.count == wrong && m.equals(p.oracle, count) && m.refersRight(p.oracle)
	}
	return equal
}
