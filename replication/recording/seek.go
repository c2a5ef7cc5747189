package recording

import (
	"math"
	"sort"
	"time"
)

// Back goes to the start of the segment before the present one, or of this one if more than half a second of it was
// played.
func (p *Player) Back() error {
	p.mayChange("Back")
	if p.segment == nil {
		return p.Seek(0)
	}
	n := p.segment.number
	if start := p.file.segments[n].time; n > 0 && p.file.head.duration(p.now-min(start, p.now)) <= time.Second/2 {
		n--
	}
	return p.Seek(p.file.head.duration(p.file.segments[n].time))
}

// Seek goes to a moment, in the past or the future. Entities that are there before and after keep their handles.
// Messages and marks up to that moment are not delivered. Hooks report the difference.
//
// The error is that of [Player.Frame]. Panics in a hook, such as one of [replication.OnSpawn].
func (p *Player) Seek(at time.Duration) error {
	p.mayChange("Seek")
	f := p.file
	if len(f.segments) == 0 {
		return p.client.Frame(0)
	}
	goal := p.units(min(max(at, 0), p.Duration())) + rounding
	from := goal
	if p.inside.Apply.Shown != nil && f.head.source == fromServer {
		from -= settleTicks // into the segment before, if the goal is near the start of one
	}
	n := sort.Search(len(f.segments), func(i int) bool { return float64(f.segments[i].time) > from }) - 1
	n = max(n, 0)
	s, err := f.load(n)
	for ; n > 0 && !p.starts(s, err); s, err = f.load(n) {
		n--
	}
	if err != nil { // of the first segment: the next one that can be played follows
		s, p.damage = &segment{time: f.segments[0].time}, err
	}
	p.segment, p.ended, p.part, p.welcome, p.hole = s, false, 0, 0, false
	p.now, p.last = s.time, s.time
	p.mute(true)
	defer p.mute(false)
	err = p.fastForward(goal)
	p.marked = sort.Search(len(f.marks), func(i int) bool { return float64(f.marks[i].time) > goal })
	p.lookForEnd()
	return err
}

// starts reports whether a segment that was loaded is one to start with, with a session of its own and a first row.
func (p *Player) starts(s *segment, err error) bool {
	some := false
	if err == nil {
		_, _, _, _, some, err = s.next(p.file)
	}
	if err != nil {
		p.damage = err
	}
	return some && len(s.welcome) > 0
}

// settle is how much time before the moment that is sought is played tick by tick, and settleTicks how many at least,
// for those who look at when states arrive: interpolation shows them two or three ticks later.
const (
	settle      = 250 * time.Millisecond
	settleTicks = 6
)

// fastForward plays up to a moment.
func (p *Player) fastForward(goal float64) error {
	from := goal - max(p.units(settle), settleTicks)
	if p.inside.Apply.Shown == nil {
		from = goal // nobody does
	}
	exact := p.file.head.source == fromClient
	passed := float64(0)
	for {
		time, ok := p.peek()
		if gap := ok && p.gap(); !ok || float64(time) > goal {
			if !ok || gap {
				goal = float64(p.now) // nothing is known of the time from there on
			}
			break
		}
		step := float64(time - p.now)
		if exact {
			step = float64(time - p.segment.time)
		}
		if err := p.take(time, true); err != nil {
			return err
		}
		if passed += step; exact || float64(time) >= from {
			if err := p.client.Frame(p.unit(passed)); err != nil {
				return err
			}
			passed = 0
		}
	}
	rest := max(math.Floor(goal)-float64(p.now), 0)
	p.now += uint64(rest)
	if exact && passed == 0 {
		return p.client.Err()
	}
	return p.client.Frame(p.unit(passed + rest))
}

// mute makes messages count as handled.
func (p *Player) mute(on bool) {
	if m := p.inside.Messages; m != nil {
		m.Muted = on
	}
}
