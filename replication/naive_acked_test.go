package replication

import (
	"encoding/binary"
	"math/bits"
	"runtime"
	"testing"
	"time"

	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// The naive server that scale is measured against. It does the library's work on a lossy link as
// textbook servers do: it keeps a copy of every entity for every client, as the client last
// acknowledged it, and compares and encodes for one client after the other. Only the world is read
// and quantised once for all. It still does less than the library: no spawns and despawns, no
// checksums, nothing besides packets.
//
// A packet is a header and entries with ascending ids:
//
//	sequence 16 | tick 32 | entries 16
//	gap to the previous id, less one: Rice code of order 1
//	age of the baseline in ticks: 6, or 63 and the baseline's tick 32 more; tick 0 is all zeros
//	mask of the fields 8, and for each of them: class 2 | zigzag of the difference from the baseline
//
// An ack is a sequence of 16 bits and a bit for it and each of those before it.

// entityCodes are the quantised fields of an entity.
type entityCodes [8]uint32

const (
	ackedHeader    = 2 + 4 + 2
	ackedGapOrder  = 1
	ackedAgeBits   = 6
	ackedOldAge    = 1<<ackedAgeBits - 1
	ackedEntryBits = 64 + ackedAgeBits + 32 + 8 + 8*(2+19) // at most
	ackedWindow    = 1024                                  // packets that wait for an ack, at most

	// ackedPatience is the number of ticks after which an unacknowledged state is sent again. It
	// exceeds all round-trip times used here, which saves the naive server time and bytes: without
	// it, an entity that stopped would be sent in every tick until its ack arrives.
	ackedPatience = 12
)

// ackedClasses are the widths of differences by class. Three of the widest and their classes fit
// into a word.
var ackedClasses = [4]uint8{5, 8, 10, 19}

// ackedClassOf is the class of a difference by its length in bits, and the total width of
// difference and class. A zero difference has width 0.
var ackedClassOf = func() (table [33]struct{ class, width uint8 }) {
	for n := 1; n < len(table); n++ {
		class := uint8(0)
		for int(ackedClasses[class]) < n && class < 3 {
			class++
		}
		table[n].class, table[n].width = class, 2+ackedClasses[class]
	}
	return table
}()

type ackedServer struct {
	naiveWorld

	tick    uint32
	read    []naiveEntity // by id, the position in the world: as of the last tick
	now     []entityCodes // of read
	changed []uint32      // last tick at which an element of now changed

	peers []*ackedPeer
	spare []*ackedFlight
}

type ackedPeer struct {
	send     func(packet []byte) error
	known    []entityCodes // by id: as last acknowledged
	since    []uint32      // tick of known, 0 before there is any
	tried    []uint32      // tick at which the entity was last sent
	sequence uint16        // of the next packet
	flights  [ackedWindow]*ackedFlight
	buf      [naiveMTU]byte
	plan     ackedPlan
}

// An ackedFlight is an unacknowledged packet.
type ackedFlight struct {
	sequence uint16
	tick     uint32
	records  []ackedRecord
}

type ackedRecord struct {
	id    uint32
	codes entityCodes
}

func newAckedServer(tb testing.TB, w *ecs.World) *ackedServer {
	return &ackedServer{naiveWorld: newNaiveWorld(tb, w)}
}

func (s *ackedServer) connect(send func(packet []byte) error) *ackedPeer {
	p := &ackedPeer{send: send}
	s.peers = append(s.peers, p)
	return p
}

// replicate plays a tick.
func (s *ackedServer) replicate() {
	s.tick++
	s.capture()
	for _, p := range s.peers {
		p.grow(len(s.now))
		if p.plan.plain() {
			p.replicate(s)
		} else {
			p.replicateChosen(s)
		}
	}
}

// capture reads the world and quantises what changed.
func (s *ackedServer) capture() {
	q := s.world.Query(&s.filter)
	for id := 0; q.Next(); id++ {
		e := naiveEntity{
			*(*scalePosition)(q.Get(s.position)), *(*scaleVelocity)(q.Get(s.velocity)),
			*(*scaleHealth)(q.Get(s.health)), *(*scaleGrounded)(q.Get(s.grounded)),
		}
		if id == len(s.now) {
			s.read, s.now, s.changed = append(s.read, e), append(s.now, s.codec.quantise(&e)), append(s.changed, s.tick)
			continue
		}
		if e.difference(&s.read[id]) == 0 {
			continue
		}
		s.read[id] = e
		if codes := s.codec.quantise(&e); codes != s.now[id] {
			s.now[id], s.changed[id] = codes, s.tick
		}
	}
}

func (c *naiveCodec) quantise(e *naiveEntity) (codes entityCodes) {
	for i, v := range [3]float32{e.position.X, e.position.Y, e.position.Z} {
		code, _ := c.position.Encode(float64(v))
		codes[i] = uint32(code)
	}
	for i, v := range [3]float32{e.velocity.X, e.velocity.Y, e.velocity.Z} {
		code, _ := c.velocity.Encode(float64(v))
		codes[3+i] = uint32(code)
	}
	health, _ := c.health.Encode(int64(e.health.HP))
	codes[6] = uint32(health)
	if e.grounded.On {
		codes[7] = 1
	}
	return codes
}

// grow makes room for so many entities.
func (p *ackedPeer) grow(n int) {
	if more := n - len(p.known); more > 0 {
		p.known = append(p.known, make([]entityCodes, more)...)
		p.since = append(p.since, make([]uint32, more)...)
		p.tried = append(p.tried, make([]uint32, more)...)
	}
}

// replicate sends entities that differ from what the client acknowledged, except those whose
// current state may still be in flight.
func (p *ackedPeer) replicate(s *ackedServer) {
	now, tick := s.now, s.tick
	known, since, tried, changed := p.known[:len(now)], p.since[:len(now)], p.tried[:len(now)], s.changed[:len(now)]
	w := bitbuf.NewWriter(p.buf[ackedHeader:])
	var f *ackedFlight
	last := -1
	for id := range now {
		e, k := &now[id], &known[id]
		if (e[0]^k[0])|(e[1]^k[1])|(e[2]^k[2])|(e[3]^k[3])|(e[4]^k[4])|(e[5]^k[5])|(e[6]^k[6])|(e[7]^k[7]) == 0 {
			continue
		}
		if tried[id] >= changed[id] && tick-tried[id] < ackedPatience {
			continue
		}
		if f != nil && w.Remaining() < ackedEntryBits {
			p.flush(s, &w, f)
			w.Reset(p.buf[ackedHeader:])
			f, last = nil, -1
		}
		if f == nil {
			f = s.flight()
		}
		w.WriteRice(uint64(id-last-1), ackedGapOrder)
		writeDifference(&w, e, k, tick-since[id], since[id])
		f.records = append(f.records, ackedRecord{uint32(id), *e})
		tried[id], last = tick, id
	}
	if f != nil {
		p.flush(s, &w, f)
	}
}

// writeDifference writes an entry from its age on. Fields are written without branches: an
// unchanged field is written with 0 bits.
func writeDifference(w *bitbuf.Writer, e, k *entityCodes, age, since uint32) {
	x, y, z := zigzag32(e[0]-k[0]), zigzag32(e[1]-k[1]), zigzag32(e[2]-k[2])
	vx, vy, vz := zigzag32(e[3]-k[3]), zigzag32(e[4]-k[4]), zigzag32(e[5]-k[5])
	health, grounded := zigzag32(e[6]-k[6]), zigzag32(e[7]-k[7])
	mask := bit(x) | bit(y)<<1 | bit(z)<<2 | bit(vx)<<3 | bit(vy)<<4 | bit(vz)<<5 | bit(health)<<6 | bit(grounded)<<7
	if age < ackedOldAge && since != 0 {
		w.WriteBits(uint64(age)|mask<<ackedAgeBits, ackedAgeBits+8)
	} else {
		w.WriteBits(ackedOldAge|uint64(since)<<ackedAgeBits|mask<<(ackedAgeBits+32), ackedAgeBits+32+8)
	}
	write3(w, x, y, z)
	if mask>>3 != 0 {
		write3(w, vx, vy, vz)
		if mask>>6 != 0 {
			write3(w, health, grounded, 0)
		}
	}
}

func zigzag32(d uint32) uint32 { return d<<1 ^ uint32(int32(d)>>31) }

// bit returns 0 for 0, and 1 otherwise.
func bit(z uint32) uint64 { return uint64((z | -z) >> 31) }

// write3 writes three differences that are not 0.
func write3(w *bitbuf.Writer, a, b, c uint32) {
	ca, cb, cc := ackedClassOf[bits.Len32(a)], ackedClassOf[bits.Len32(b)], ackedClassOf[bits.Len32(c)]
	na := uint(ca.width)
	nb := na + uint(cb.width)
	w.WriteBits(uint64(a)<<2|uint64(ca.class)|
		(uint64(b)<<2|uint64(cb.class))<<(na&63)|
		(uint64(c)<<2|uint64(cc.class))<<(nb&63), nb+uint(cc.width))
}

func (s *ackedServer) flight() *ackedFlight {
	if n := len(s.spare); n > 0 {
		f := s.spare[n-1]
		s.spare = s.spare[:n-1]
		return f
	}
	return &ackedFlight{records: make([]ackedRecord, 0, 192)}
}

func (s *ackedServer) release(f *ackedFlight) {
	f.records = f.records[:0]
	s.spare = append(s.spare, f)
}

func (p *ackedPeer) flush(s *ackedServer, w *bitbuf.Writer, f *ackedFlight) {
	f.sequence, f.tick = p.sequence, s.tick
	p.sequence++
	place := &p.flights[f.sequence%ackedWindow]
	if *place != nil {
		s.release(*place) // lost
	}
	*place = f
	binary.LittleEndian.PutUint16(p.buf[0:], f.sequence)
	binary.LittleEndian.PutUint32(p.buf[2:], f.tick)
	binary.LittleEndian.PutUint16(p.buf[6:], uint16(len(f.records)))
	_ = p.send(p.buf[:ackedHeader+len(w.Bytes())])
}

// receive processes an ack.
func (p *ackedPeer) receive(s *ackedServer, packet []byte) {
	newest := binary.LittleEndian.Uint16(packet)
	for i, came := range packet[2:] {
		for ; came != 0; came &= came - 1 {
			sequence := newest - uint16(8*i+bits.TrailingZeros8(came))
			place := &p.flights[sequence%ackedWindow]
			if f := *place; f != nil && f.sequence == sequence {
				p.acknowledge(f)
				*place = nil
				s.release(f)
			}
		}
	}
}

func (p *ackedPeer) acknowledge(f *ackedFlight) {
	for i := range f.records {
		r := &f.records[i]
		if since := &p.since[r.id]; *since < f.tick {
			p.known[r.id], *since = r.codes, f.tick
		}
	}
}

// ackedRig runs the naive server on the links of the library's fake clients.
type ackedRig struct {
	world  *scaleWorld
	server *ackedServer
	links  []*fakeLink
	outs   [][2 + wire.WindowSize/8]byte // by client
	acks   [][]byte                      // by client: in outs, or nil
	ticks  int
	cpu    time.Duration // used by the server so far
}

func newAckedRig(tb testing.TB, load scaleLoad, clients int, loss float64, seed uint64) *ackedRig {
	r := &ackedRig{
		world: newScaleWorld(load, seed), ticks: 16,
		outs: make([][2 + wire.WindowSize/8]byte, clients), acks: make([][]byte, clients),
	}
	r.server = newAckedServer(tb, &r.world.ecs)
	for i := range clients {
		l := newFakeLink(0, uint64(i)+1, 5+i%5, loss)
		r.links = append(r.links, &l)
		r.server.connect(func(packet []byte) error {
			l.carry(packet)
			return nil
		})
	}
	return r
}

// answer builds the ack of a client.
func (r *ackedRig) answer(client int) []byte {
	l, out := r.links[client], r.outs[client][:]
	newest, count := l.arrive(r.ticks)
	if count == 0 {
		return nil
	}
	out = out[:2+min((count+7)/8, wire.WindowSize/8)]
	clear(out)
	binary.LittleEndian.PutUint16(out, uint16(newest))
	for i := range min(count, wire.WindowSize) {
		if l.came[(newest-i)%wire.WindowSize] {
			out[2+i/8] |= 1 << (i % 8)
		}
	}
	return out
}

func (r *ackedRig) tick() time.Duration {
	r.world.step()
	r.ticks++
	for i := range r.links {
		r.acks[i] = r.answer(i)
	}
	begin, used := time.Now(), cpuTime()
	for i, packet := range r.acks {
		if packet != nil {
			r.server.peers[i].receive(r.server, packet)
		}
	}
	r.server.replicate()
	r.cpu += cpuTime() - used
	return time.Since(begin)
}

func (r *ackedRig) used() time.Duration { return r.cpu }

func (r *ackedRig) sent() (n uint64) {
	for _, l := range r.links {
		n += l.bytes
	}
	return n
}

// warm plays until every client has everything. That takes few ticks, because there is no window to
// fill.
func (r *ackedRig) warm() {
	for range scaleWarmUp {
		r.world.step()
	}
	for range 3 * ackedPatience {
		r.tick()
	}
	runtime.GC()
}

// ackedDecoder is a client that reads the packets field by field.
type ackedDecoder struct {
	mirror []entityCodes
	ticks  []uint32                 // of mirror
	states []map[uint32]entityCodes // possible baselines, by tick
}

func newAckedDecoder(entities int) *ackedDecoder {
	d := &ackedDecoder{mirror: make([]entityCodes, entities), ticks: make([]uint32, entities)}
	for range entities {
		d.states = append(d.states, map[uint32]entityCodes{0: {}})
	}
	return d
}

// receive decodes a packet and compares every state in it with the truth of its tick.
func (d *ackedDecoder) receive(t *testing.T, packet []byte, truth map[uint32][]entityCodes) {
	require.LessOrEqual(t, len(packet), naiveMTU)
	tick := binary.LittleEndian.Uint32(packet[2:])
	r := bitbuf.NewReader(packet[ackedHeader:])
	id := -1
	for range binary.LittleEndian.Uint16(packet[6:]) {
		id += int(r.ReadRice(ackedGapOrder)) + 1
		baseline := tick - uint32(r.ReadBits(ackedAgeBits))
		if baseline == tick-ackedOldAge {
			baseline = uint32(r.ReadBits(32))
		}
		codes, ok := d.states[id][baseline]
		require.True(t, ok, "entity %d has no state of tick %d", id, baseline)
		mask := r.ReadBits(8)
		for i := range codes {
			if mask>>i&1 != 0 {
				width := uint(ackedClasses[r.ReadBits(2)])
				codes[i] += uint32(bitbuf.UnZigZag(r.ReadBits(width)))
			}
		}
		require.Equal(t, truth[tick][id], codes, "entity %d", id)
		for other := range d.states[id] {
			if other < baseline {
				delete(d.states[id], other) // the server will not use older baselines
			}
		}
		d.states[id][tick] = codes
		if tick > d.ticks[id] {
			d.mirror[id], d.ticks[id] = codes, tick
		}
	}
	require.NoError(t, r.Finish())
}

// TestAckedServerReplicates: whatever is lost, every packet that arrives can be decoded and is
// true, and clients converge soon after the last change.
func TestAckedServerReplicates(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
	for _, loss := range []float64{0, 0.1} {
		r := newAckedRig(t, scaleGame(700), 5, loss, seedOf(t))
		truth := map[uint32][]entityCodes{}
		var decoders []*ackedDecoder
		for _, l := range r.links {
			d := newAckedDecoder(700)
			l.deliver = func(packet []byte) { d.receive(t, packet, truth) }
			decoders = append(decoders, d)
		}
		tick := func() {
			r.tick()
			truth[r.server.tick] = r.codes()
		}
		for range 120 {
			tick()
		}
		r.world.load = scaleLoad{}
		for range 8 * ackedPatience {
			tick()
		}
		sent := r.sent()
		tick()
		require.Equal(t, sent, r.sent(), "still sends after all was acknowledged")
		for i, d := range decoders {
			require.Equal(t, truth[r.server.tick], d.mirror, "client %d, loss %v", i, loss)
		}
	}
}

// TestAckedServerDoesNotGoBack: a late ack of an old packet changes nothing, because the client may
// have dropped those states.
func TestAckedServerDoesNotGoBack(t *testing.T) {
	g := newScaleWorld(scaleLoad{entities: 1, movers: 1}, seedOf(t))
	s := newAckedServer(t, &g.ecs)
	p := s.connect(func([]byte) error { return nil })
	for range 2 {
		g.parts[0].position.X = float32(s.tick)
		s.replicate()
	}
	require.EqualValues(t, 2, p.sequence)
	p.receive(s, []byte{1, 0, 1})
	require.Equal(t, s.now, p.known)
	p.receive(s, []byte{0, 0, 1})
	require.Equal(t, s.now, p.known)
	require.Equal(t, []uint32{2}, p.since)
}

// codes returns the codes of the world, quantised field by field.
func (r *ackedRig) codes() (all []entityCodes) {
	for _, p := range r.world.parts {
		var narrow entityCodes
		for i, code := range naiveCodes(&r.server.codec, &naiveEntity{*p.position, *p.velocity, *p.health, *p.grounded}) {
			narrow[i] = uint32(code)
		}
		all = append(all, narrow)
	}
	return all
}

// TestAckedServerDoesNotAllocate: it is a fair competitor.
func TestAckedServerDoesNotAllocate(t *testing.T) {
	r := newAckedRig(t, scaleGame(2000), 5, 0, seedOf(t))
	r.warm()
	require.Zero(t, testing.AllocsPerRun(20, func() { r.tick() }))
}
