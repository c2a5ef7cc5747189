package inspect

import (
	"cmp"
	"math"
	"reflect"
	"slices"
	"time"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/seam"
)

// What a server's samples have, before the bandwidth of each component in kbit/s. All is of the time since the sample
// before, in all peers; counts of entities are per tick.
const (
	sTime      = iota // seconds since the inspector was attached
	sBandwidth        // kbit/s sent: everything
	sMessages         // kbit/s of messages, and of what belongs to messages and inputs
	sPackets          // per second
	sSize             // bytes of a packet, mean
	sLargest          // bytes
	sRoundTrip        // ms, median of peers
	sWorst            // ms, largest of peers
	sLoss             // percent, over 10 s
	sAge              // ticks, mean of the baselines of entities that were sent
	sFull             // entities sent in full, in the sample
	sSent             // entities per tick
	sHidden           // entities per tick that were not sent: out of view
	sTurn             // not the peer's turn, or no slot at the client
	sRoom             // no room
	sTicks            // per second
	sWork             // µs of a Replicate, mean
	sLongest          // µs of the longest
	sPeers            // connected
	sEntities         // replicated
	serverKeys
)

var serverNames = [serverKeys]string{
	"time", "bandwidth", "messages", "packets", "size", "largest", "roundTrip", "worst", "loss", "age", "full",
	"sent", "hidden", "turn", "room", "ticks", "work", "longest", "peers", "entities",
}

// What the samples of one peer have.
const (
	pBandwidth = iota
	pSize
	pRoundTrip
	pLoss
	pAge // ticks since the state that the peer acknowledged last
	pFull
	pSent
	pHidden
	pTurn
	pRoom
	pBacklog // bytes
	peerKeys
)

var peerNames = [peerKeys]string{
	"bandwidth", "size", "roundTrip", "loss", "age", "full", "sent", "hidden", "turn", "room", "backlog",
}

// server is the inspected server.
type server struct {
	server *replication.Server
	in     seam.Server
	limit  int // of peers with records

	stats      replication.ServerStats
	unmarked   int
	looked     int64 // the latest sample that counted them
	components []component
	bits       []uint64 // by component, at the latest sample
	ages       [33]uint64

	peers   []*peer // connected, in order
	find    map[*replication.Peer]*peer
	spare   []*peer // with their memory
	shown   int     // peers with records
	gone    replication.PeerStats
	trips   []time.Duration // memory
	outcome losses
}

// A component is one of the schema.
type component struct {
	name   string
	fields []field
}

// A field is one of a component. Its number is that in ServerStats.Fields.
type field struct {
	name, codec string
	fixed, raw  int // bits of its code, and of the value in memory; 0: not known
	number      int
}

// peer is a peer of the inspected server.
type peer struct {
	of      *replication.Peer
	number  int
	inside  seam.Peer
	stats   replication.PeerStats // at the latest sample
	at      replication.Remote
	remote  string // at in words
	live    bool
	record  *record // nil: beyond the limit
	outcome losses
}

// losses has packets that arrived and that got lost, by sample.
type losses struct {
	arrived, lost [lossOver]uint32
}

// add notes those of sample n, and returns which percentage got lost in the last samples.
func (l *losses) add(n int64, arrived, lost uint64) float32 {
	l.arrived[n%lossOver], l.lost[n%lossOver] = uint32(arrived), uint32(lost)
	var a, b uint64
	for i := range l.arrived {
		a += uint64(l.arrived[i])
		b += uint64(l.lost[i])
	}
	if a+b == 0 {
		return unknown
	}
	return 100 * float32(b) / float32(a+b)
}

// Server attaches an inspector to a server. Call it on the server's goroutine, not in its hooks. Panics if there is no
// server.
func Server(s *replication.Server, opts ...Option) *Inspector {
	o := apply(opts)
	if o.interpolation != nil {
		panic("inspect: Server WithInterpolation: that is an option of Client")
	}
	e := &server{server: s, in: seam.OfServer(s), limit: o.peers, find: map[*replication.Peer]*peer{}}
	e.in.Stats(&e.stats)
	e.components = componentsOf(e.in.Schema, e.stats.Fields)
	e.bits = make([]uint64, len(e.components))
	e.ages = e.stats.BaselineAges
	e.looked = math.MinInt64
	for i := range e.bits {
		e.bits[i] = e.bitsOf(i)
	}
	for of := range s.Peers() {
		if of.Connected() {
			e.add(of, 0).stats = of.Stats() // what they did so far is not of the first sample
		}
	}
	return attach(e, newRecord(serverNames[:], len(e.bits)), e.in.Watchers, e.in.Opts.MTU, &o)
}

// PeerNumber returns the number of a peer of the inspected server, for [Inspector.AppendJSON].
func PeerNumber(p *replication.Peer) int { return int(seam.OfPeer(p).Number) }

// componentsOf returns the components with their fields. The numbers of fields come from the statistics.
func componentsOf(s *schema.Schema, fields []replication.FieldStats) []component {
	var all []component
	n := 0
	for i := range s.Components {
		c := &s.Components[i]
		one := component{name: c.Name}
		var codecs []*schema.Column
		for k := range c.Columns {
			for range c.Columns[k].Codec.AppendLayout(nil, "") {
				codecs = append(codecs, &c.Columns[k])
			}
		}
		for k := range c.Layout.Fields {
			f := field{name: c.Layout.Fields[k].Name, fixed: int(c.Layout.Fields[k].Width()), number: n}
			if k < len(codecs) {
				f.codec, f.raw = codecs[k].Codec.Text, rawBits(c.Typ, codecs[k])
			}
			one.fields = append(one.fields, f)
			n++
		}
		all = append(all, one)
	}
	for i := range all { // what names the components that changed
		all[i].fields = append(all[i].fields, field{number: n})
		n++
	}
	if n != len(fields) {
		panic("inspect: the statistics have other fields than the schema: please report it")
	}
	if s.Link >= 0 { // not the game's: its bits count as headers
		all = slices.Delete(all, s.Link, s.Link+1)
	}
	return all
}

// rawBits returns the size of a field in memory, 0 if it is converted.
func rawBits(t reflect.Type, c *schema.Column) int {
	if c.StandIn != nil {
		return 0
	}
	for _, step := range c.Steps {
		switch t.Kind() {
		case reflect.Struct:
			t = t.Field(step).Type
		case reflect.Array:
			t = t.Elem()
		default:
			return 0
		}
	}
	return int(t.Size()) * 8
}

// bitsOf returns the bits sent of a component so far.
func (e *server) bitsOf(i int) (bits uint64) {
	for _, f := range e.components[i].fields {
		bits += e.stats.Fields[f.number].Bits
	}
	return bits
}

func (e *server) sample(row []float32, at int64, t *tally, seconds float64) {
	e.in.Stats(&e.stats)
	if at-e.looked >= 8 { // it takes time for each set of components
		e.unmarked, e.looked = e.in.Snap.Unmarked(), at
	}
	e.stats.Unmarked = e.unmarked
	kbits := func(bits uint64) float32 { return float32(float64(bits) / seconds / 1000) }
	row[sBandwidth], row[sPackets] = kbits(8*t.sent.bytes), float32(float64(t.sent.number)/seconds)
	if t.sent.number > 0 {
		row[sSize] = float32(float64(t.sent.bytes) / float64(t.sent.number))
		row[sLargest] = float32(t.sent.largest)
	}
	for i, before := range e.bits {
		e.bits[i] = e.bitsOf(i)
		row[serverKeys+i] = kbits(e.bits[i] - before)
	}
	row[sAge] = e.age()
	row[sTicks] = float32(float64(t.steps) / seconds)
	row[sWork] = micros(t.busy) / float32(max(t.steps, 1))
	row[sLongest] = micros(t.longest)
	row[sPeers], row[sEntities] = float32(e.stats.Peers), float32(e.stats.Entities)

	e.samplePeers(row, at, float32(max(t.steps, 1)), kbits)
}

// age returns the mean age of the baselines of the entities sent since the sample before, in ticks.
func (e *server) age() float32 {
	var n, sum uint64
	for age := 1; age < len(e.ages); age++ {
		d := e.stats.BaselineAges[age] - e.ages[age]
		n, sum = n+d, sum+d*uint64(age)
	}
	e.ages = e.stats.BaselineAges
	if n == 0 {
		return unknown
	}
	return float32(float64(sum) / float64(n))
}

// samplePeers reads the counters of all peers.
func (e *server) samplePeers(row []float32, at int64, ticks float32, kbits func(uint64) float32) {
	for _, p := range e.peers {
		p.live = false
	}
	var sum change
	e.trips = e.trips[:0]
	for of := range e.server.Peers() {
		p := e.find[of]
		if p == nil {
			if !of.Connected() {
				continue // whoever never joins is nobody's client
			}
			p = e.add(of, at)
		}
		p.live = true
		if at := of.Remote(); p.at != at {
			p.at, p.remote = at, at.String()
		}
		var c change
		c.between(&p.stats, of.Stats())
		sum.add(&c)
		if p.stats.RoundTrip > 0 {
			e.trips = append(e.trips, p.stats.RoundTrip)
		}
		if p.record != nil {
			p.sample(e.in.Snap.Tick, at, ticks, &c, kbits)
		}
	}
	e.forget()
	row[sMessages] = kbits(8 * sum.messages)
	row[sLoss] = e.outcome.add(at, sum.acked, sum.lost)
	row[sFull] = float32(sum.full)
	row[sSent], row[sHidden] = float32(sum.sent)/ticks, float32(sum.hidden)/ticks
	row[sTurn], row[sRoom] = float32(sum.turn)/ticks, float32(sum.room)/ticks
	if n := len(e.trips); n > 0 {
		slices.Sort(e.trips)
		row[sRoundTrip], row[sWorst] = millis(e.trips[n/2]), millis(e.trips[n-1])
	}
}

// mtu returns the largest MTU of the peers, the server's own without peers.
func (e *server) mtu() (most int) {
	for _, p := range e.peers {
		most = max(most, p.inside.MTU)
	}
	return cmp.Or(most, e.in.Opts.MTU)
}

// add adds a peer.
func (e *server) add(of *replication.Peer, at int64) *peer {
	p := &peer{}
	if n := len(e.spare); n > 0 {
		p, e.spare = e.spare[n-1], e.spare[:n-1]
	}
	inside := seam.OfPeer(of)
	*p = peer{of: of, number: int(inside.Number), inside: inside, record: p.record}
	if p.record == nil && e.shown < e.limit {
		r := newRecord(peerNames[:], 0)
		p.record = &r
	}
	if p.record != nil {
		e.shown++
		p.record.first = at
	}
	e.find[of] = p
	e.peers = append(e.peers, p)
	return p
}

// forget forgets the peers whose connections have ended, but for their memory and their counters.
func (e *server) forget() {
	e.peers = slices.DeleteFunc(e.peers, func(p *peer) bool {
		if p.live {
			return false
		}
		delete(e.find, p.of)
		addCounters(&e.gone, &p.stats)
		p.of, p.inside = nil, seam.Peer{}
		if p.record != nil {
			e.shown--
			e.spare = append(e.spare, p)
		}
		return true
	})
}

// A change is what happened to a peer, or to all, between two samples.
type change struct {
	bytes, packets, messages, acked, lost, full, sent, hidden, turn, room uint64
}

// between finds out what happened since the counters were before, and replaces them.
func (c *change) between(before *replication.PeerStats, now replication.PeerStats) {
	b := before
	c.messages = now.MessageBytes - b.MessageBytes
	c.bytes = now.Bytes - b.Bytes + c.messages + now.HashBytes - b.HashBytes
	c.packets = now.Packets - b.Packets + now.MessagePackets - b.MessagePackets
	c.acked, c.lost = now.Acked-b.Acked, now.Lost-b.Lost
	c.full = now.FullStates - b.FullStates
	c.sent = now.Updates - b.Updates + c.full + now.KeyframeFallbacks - b.KeyframeFallbacks
	c.hidden = now.NotVisible - b.NotVisible
	c.turn = now.NotItsTurn - b.NotItsTurn + now.Withheld - b.Withheld // what waits for a silent peer is not held back
	c.room = now.OverBudget - b.OverBudget
	*before = now
}

func (c *change) add(o *change) {
	c.messages += o.messages
	c.acked += o.acked
	c.lost += o.lost
	c.full += o.full
	c.sent += o.sent
	c.hidden += o.hidden
	c.turn += o.turn
	c.room += o.room
}

// sample puts a sample of the peer.
func (p *peer) sample(tick replication.Tick, at int64, ticks float32, c *change, kbits func(uint64) float32) {
	row := p.record.begin()
	row[pBandwidth] = kbits(8 * c.bytes)
	if c.packets > 0 {
		row[pSize] = float32(c.bytes) / float32(c.packets)
	}
	if p.stats.RoundTrip > 0 {
		row[pRoundTrip] = millis(p.stats.RoundTrip)
	}
	row[pLoss] = p.outcome.add(at, c.acked, c.lost)
	if a := p.inside.Acked; a.AnyAcked {
		row[pAge] = float32(tick - a.Recent)
	}
	row[pFull] = float32(c.full)
	row[pSent], row[pHidden] = float32(c.sent)/ticks, float32(c.hidden)/ticks
	row[pTurn], row[pRoom] = float32(c.turn)/ticks, float32(c.room)/ticks
	row[pBacklog] = float32(p.stats.Backlog)
	p.record.put(at)
}

func millis(d time.Duration) float32 { return float32(d.Seconds() * 1e3) }
func micros(d time.Duration) float32 { return float32(d.Seconds() * 1e6) }
