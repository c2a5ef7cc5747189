package recording

import (
	"fmt"
	"io"
	"maps"
	"math"
	"time"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/seam"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// MaxSpeed is the largest speed of a player.
const MaxSpeed = 16

// A Mark is a text at a moment of a recording, see [Recorder.Mark].
type Mark struct {
	At   time.Duration // since the beginning
	Text string
}

// A Player makes a world follow a recording. It belongs to the goroutine of that world.
type Player struct {
	client  *replication.Client
	inside  *seam.Client
	file    *file
	onMark  func(Mark)
	packets packetHook // nil: nobody asks for packets

	segment *segment
	welcome uint64  // number of the session
	now     uint64  // time shown, in units of the file
	part    float64 // of a unit beyond that
	last    uint64  // time of the latest row that was taken
	marked  int     // marks up to here are over
	speed   float64
	ended   bool
	closed  bool // its client is
	damage  error
	hole    bool // some is missing behind what was taken
}

// NewPlayer returns a player of the recording in r, which has size bytes. The schema must equal that of the recording.
// The player has a client in the world, see [Player.Client].
//
// The error is a sentence that names why the recording can't be played: it is none, is of another version or schema
// (then it wraps a [*replication.SchemaError]), or can't be read. What is wrong with parts of a recording is no error:
// see [Player.Damage].
//
// Panics if r is nil, and where [replication.NewClient] does.
func NewPlayer(
	world *ecs.World, schema *replication.Schema, r io.ReaderAt, size int64, opts ...Option,
) (*Player, error) {
	if r == nil {
		panic("recording: NewPlayer needs a file")
	}
	s := newSettings(opts)
	f := &file{r: r, size: max(size, 0), memory: s.memory}
	if schema == nil {
		panic("recording: NewPlayer needs a schema: make one as at the server")
	}
	if err := f.open(schema); err != nil {
		return nil, err
	}
	p := &Player{file: f, speed: 1, damage: f.damage}
	p.client = replication.NewClient(world, schema, replication.WithTimeout(0))
	p.client.SetSend(func([]byte) error { return nil })
	p.inside = seam.OfClient(p.client)
	*p.inside.Ending = append(*p.inside.Ending, func() { p.closed = true })
	p.ended = len(f.segments) == 0
	return p, nil
}

// Client returns the client of the world, for hooks, message handlers and package interpolation. Don't call its Frame
// and Receive: the player does. Its Close removes what the player has put into the world.
func (p *Player) Client() *replication.Client { return p.client }

// Duration returns the length of the recording.
func (p *Player) Duration() time.Duration { return p.file.head.duration(p.file.time) }

// Position returns the moment that the player has reached.
func (p *Player) Position() time.Duration { return p.file.head.duration(p.now) + p.unit(p.part) }

// Meta returns the metadata of the recording.
func (p *Player) Meta() map[string]string { return maps.Clone(p.file.head.meta) }

// Marks returns the marks of the recording, in their order.
func (p *Player) Marks() []Mark {
	marks := make([]Mark, len(p.file.marks))
	for i := range marks {
		marks[i] = p.mark(i)
	}
	return marks
}

func (p *Player) mark(i int) Mark {
	return Mark{p.file.head.duration(p.file.marks[i].time), p.file.marks[i].text}
}

// OnMark makes Frame and Step call fn for each mark that they pass; nil ends that.
func (p *Player) OnMark(fn func(Mark)) { p.onMark = fn }

// OnPacket makes Frame and Step call fn with each packet of the recording when the client has received it, and with
// what it read in the packet; nil ends that. So a tool can print what was sent, and what it cost. fn may keep the
// packet. Packets that Seek passes are left out.
//
// fn must not call methods of the player that change it.
func (p *Player) OnPacket(fn func(*Packet)) {
	p.packets = nil
	if fn != nil {
		p.packets = newExplainer(p.inside, fn)
	}
}

// Ended reports whether the player has reached the end of the recording.
func (p *Player) Ended() bool { return p.ended }

// Damage returns what is wrong with the recording, as far as it is known, or nil: it was cut off, or some of it is
// damaged. Everything else is played; what is missing, for this reason or since the recorder dropped it, is left out.
func (p *Player) Damage() error { return p.damage }

// SetSpeed sets how fast time passes: 1 as recorded, 0 not at all.
//
// Panics if it is not 0 to MaxSpeed.
func (p *Player) SetSpeed(speed float64) {
	if !(speed >= 0 && speed <= MaxSpeed) {
		panic(fmt.Sprintf("recording: a speed of %v: use 0 to %d", speed, MaxSpeed))
	}
	p.speed = speed
}

// unit returns units of the file as a duration.
func (p *Player) unit(units float64) time.Duration {
	if p.file.head.source == fromClient {
		return time.Duration(min(units, float64(time.Hour)))
	}
	return time.Duration(min(units/float64(p.file.head.rate), 3600) * float64(time.Second))
}

// units returns a duration in units of the file.
func (p *Player) units(d time.Duration) float64 {
	if p.file.head.source == fromClient {
		return float64(d)
	}
	return d.Seconds() * float64(p.file.head.rate)
}

// rounding is what sums of times are off by at most, in units of the file.
const rounding = 1e-6

// longest is the longest time that the client passes at once while it is played faster.
const longest = 50 * time.Millisecond

// Frame lets dt pass, times the speed, and brings the world up to date. Call it once per frame, in place of
// [replication.Client.Frame], which it calls. At the end of the recording time stands still, and what is interpolated
// completes its motion.
//
// A recording of a client is played frame by frame, as the client had them.
//
// The error is that of the client's Frame; what can't be read is left out, see [Player.Damage]. Panics in a hook.
func (p *Player) Frame(dt time.Duration) error {
	p.mayChange("Frame")
	dt = min(max(dt, 0), time.Minute)
	left := p.units(dt) * p.speed
	exact := p.file.head.source == fromClient
	passed := 0. // since the client's last Frame
	for {
		time, ok := p.peek()
		wait := float64(time-p.now) - p.part
		if ok && p.gap() {
			wait = 0
		}
		if !ok || wait > left+rounding {
			if ok {
				full := math.Floor(p.part + left)
				p.now, p.part = p.now+uint64(full), p.part+left-full
			} else {
				p.ended, p.part = true, 0
			}
			p.pass()
			if exact && ok {
				return p.client.Err()
			}
			return p.client.Frame(p.unit(passed + left))
		}
		left = max(left-wait, 0)
		passed += wait
		if p.begins() && passed > 0 && !exact {
			if err := p.client.Frame(p.unit(passed)); err != nil {
				return err
			}
			passed = 0
		}
		step := time - p.segment.time
		err := p.take(time, false)
		switch {
		case err != nil:
		case exact:
			err = p.client.Frame(p.unit(float64(step)))
			passed = 0
		case p.unit(passed) >= longest:
			err = p.client.Frame(p.unit(passed))
			passed = 0
		}
		if err != nil {
			return err
		}
	}
}

// Step plays one tick of a recording of a server, or one frame of one of a client. The first one shows the beginning.
// The error is that of [Player.Frame].
func (p *Player) Step() error {
	p.mayChange("Step")
	err := p.step()
	p.lookForEnd()
	return err
}

// lookForEnd notes whether nothing follows.
func (p *Player) lookForEnd() {
	if _, more := p.peek(); !more {
		p.ended = true
	}
}

func (p *Player) step() error {
	time, ok := p.peek()
	if !ok {
		p.ended = true
		return p.client.Frame(0)
	}
	if exact := p.file.head.source == fromClient; exact {
		step := time - p.segment.time
		if err := p.take(time, false); err != nil {
			return err
		}
		return p.client.Frame(p.unit(float64(step)))
	}
	passed := 1 - p.part
	if next := p.now + 1; p.welcome == 0 {
		passed = 0 // the first row is the beginning
	} else if time > next && !p.gap() {
		p.now, p.part = next, 0
		p.pass()
		return p.client.Frame(p.unit(passed))
	}
	if err := p.take(time, false); err != nil {
		return err
	}
	if err := p.client.Frame(p.unit(passed)); err != nil {
		return err
	}
	if next, ok := p.peek(); !ok || next > time || !p.begins() {
		return nil
	}
	return p.take(time, false) // the first row of a segment belongs to the tick
}

// mayChange panics where the world can't change.
func (p *Player) mayChange(method string) {
	p.inside.Apply.Hooks.NotInHook("Player." + method)
	if p.closed {
		panic("recording: Player." + method + " after Close or Detach of its client: make another player")
	}
}

// pass calls the function of OnMark.
func (p *Player) pass() {
	for p.marked < len(p.file.marks) && p.file.marks[p.marked].time <= p.now {
		p.marked++
		if p.onMark != nil {
			p.onMark(p.mark(p.marked - 1))
		}
	}
}

// begins reports whether the next row is the first one of a session.
func (p *Player) begins() bool { return !p.segment.began && len(p.segment.welcome) > 0 }

// gap reports whether the next row follows a part of the recording that is missing. Players leave that out.
func (p *Player) gap() bool { return p.begins() && p.welcome != 0 && p.segment.time > p.last }

// peek returns the time of the next row, and false if there is none. It goes on to the next segment that can be read.
func (p *Player) peek() (time uint64, ok bool) {
	f := p.file
	for n := 0; ; {
		if s := p.segment; s != nil {
			time, _, _, _, ok, err := s.next(f)
			if ok {
				return max(time, p.now), true
			}
			if err != nil {
				p.damage, p.hole = err, true
			}
			n = s.number + 1
		}
		if n >= len(f.segments) {
			return p.now, false
		}
		s, err := f.load(n)
		if err != nil {
			p.damage, p.hole = err, true
		}
		if p.hole = p.hole && (err != nil || len(s.welcome) == 0); p.hole { // it continues what is missing
			s = &segment{number: n, time: f.segments[n].time}
		}
		p.segment = s
	}
}

// take gives the client the packets of the next row.
func (p *Player) take(time uint64, seeks bool) error {
	s := p.segment
	at, packets, rest, sum, ok, _ := s.next(p.file)
	if !ok {
		return nil
	}
	first := p.begins()
	if first {
		// The state that the session begins with is the one that is shown, unless something is missing.
		continues := p.welcome != 0 && s.time == p.last && s.number > 0
		if continues { // what came is handled before the session ends
			if err := p.client.Frame(0); err != nil {
				return err
			}
		}
		if err := p.begin(continues, seeks); err != nil {
			p.damage = err
			s.rest, s.began = nil, true
			return nil
		}
	}
	s.time, s.rest, s.sum, s.began = at, rest, sum, true
	p.now, p.part, p.last = max(p.now, time), 0, at
	for r := (parser{b: packets}); len(r.b) > 0; {
		packet := r.bytes()
		if r.bad {
			p.damage = p.file.broken(s.at, errContent)
			break
		}
		p.receive(packet, seeks)
	}
	if first && p.file.head.source == fromServer {
		p.inside.Complete()
	}
	if !seeks {
		p.pass()
	}
	return nil
}

// receive gives the client a packet. An error is counted in its stats.
func (p *Player) receive(packet []byte, seeks bool) {
	if p.packets != nil && !seeks {
		p.packets.receive(p, packet)
		return
	}
	_ = p.client.Receive(packet)
}

// begin begins the session of a segment.
func (p *Player) begin(continues, seeks bool) error {
	var m wire.Welcome
	body := wire.OpenHandshake(p.segment.welcome)
	if body == nil || wire.PacketKind(body[0]) != wire.KindWelcome || !m.Parse(body) {
		return p.file.broken(p.segment.at, errContent)
	}
	if m.Session == p.welcome {
		return nil // the server has confirmed it
	}
	p.welcome = m.Session
	if p.packets != nil && !seeks {
		p.packets.welcome(p, p.segment.welcome, &m)
	}
	if err := p.inside.Resume(p.segment.welcome, continues); err != nil {
		return p.file.broken(p.segment.at, err)
	}
	return nil
}
