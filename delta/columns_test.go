package delta

import (
	"math/bits"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/bitbuf"
)

// A columnsTest has a block of slots, the second one, whose rows change now and then.
type columnsTest struct {
	t         testing.TB
	layout    *Layout
	histories []*testRows
	now       Tick
	columns   *Columns
	packed    *Packed

	entries, lost int // what was met
}

const columnsFirst = blockSlots // the first slot of the block

func newColumnsTest(t testing.TB, s *script, component func(*script) Component) *columnsTest {
	var components []Component
	for range 1 + s.below(6) {
		components = append(components, component(s))
	}
	l := NewLayout(components...)
	x := &columnsTest{t: t, layout: l, now: Tick(s.number()), columns: NewColumns(l), packed: NewPacked(l)}
	for i := range l.Components {
		x.histories = append(x.histories, newTestRows(l.Components[i].Words(), 4+s.below(16), x.now))
	}
	return x
}

// tick lets rows of some slots change, come and go.
func (x *columnsTest) tick(s *script, born Tick) {
	x.now++
	x.packed.SetShift(Shift(x.now) % shifts)
	for c, h := range x.histories {
		comp := &x.layout.Components[c]
		lazy := 1 + s.below(4)
		for slot := columnsFirst; slot < columnsFirst+blockSlots; slot++ {
			switch {
			case x.now == born+1 && s.below(5) > 0:
				h.set(slot, x.now, s.row(comp, nil))
			case s.below(lazy*2) > 0:
			case h.has(slot) && s.below(60) == 0:
				h.set(slot, x.now, nil)
			case h.has(slot):
				h.set(slot, x.now, s.row(comp, append([]uint32{}, h.row(slot)...)))
			case s.below(30) == 0:
				h.set(slot, x.now, s.row(comp, nil))
			}
		}
	}
}

// against returns slots and their baselines, and false if these are from before the slots were born.
func (x *columnsTest) against(s *script, born Tick) (a Against, ok bool) {
	a = Against{Slots: s.number(), A1: x.now - 1 - Tick(s.below(12)), Shift: Shift(x.now) % shifts}
	if s.below(4) > 0 {
		a.A2 = a.A1 - 1 - Tick(s.below(8))
		a.Ratio = Ratio(x.now, a.A1, a.A2)
	}
	return a, a.A1.After(born) && (a.Ratio == 0 || a.A2.After(born))
}

// encode is what Packed makes of a slot, or false if a baseline is not known.
func (x *columnsTest) encode(w *bitbuf.Writer, slot int, a *Against) (known bool) {
	oldest := a.A1
	if a.Ratio != 0 {
		oldest = a.A2
	}
	costs := len(x.packed.Costs)
	x.packed.Begin()
	for c, h := range x.histories {
		if !h.has(slot) || x.layout.Components[c].Width() == 0 {
			continue
		}
		if !h.began(slot).After(oldest) {
			x.packed.AddSame(c, a.Ratio != 0)
			continue
		}
		var base2 []uint32
		base, known := h.at(slot, a.A1)
		if known && base != nil && a.Ratio != 0 {
			base2, known = h.at(slot, a.A2)
		}
		if !known || base == nil {
			x.packed.Costs = x.packed.Costs[:costs]
			return false
		}
		x.packed.Add(c, h.row(slot), base, base2, a.Ratio)
	}
	x.packed.End(w)
	return true
}

// check compares all slots.
func (x *columnsTest) check(a Against) {
	got := x.columns.Encode(a)
	var want uint64
	x.packed.Costs = x.packed.Costs[:0]
	most, works := x.columns.Most(got), *x.columns.Works(got)
	for set := a.Slots; set != 0; set &= set - 1 {
		slot := columnsFirst + bits.TrailingZeros64(set)
		w := bitbuf.NewWriter(make([]byte, 1<<13))
		if !x.encode(&w, slot, &a) {
			x.lost++
			continue
		}
		want |= 1 << (slot % blockSlots)
		if got>>(slot%blockSlots)&1 == 0 {
			continue
		}
		w2 := bitbuf.NewWriter(make([]byte, 1<<13))
		x.columns.Write(&w2, slot)
		require.Equal(x.t, bitsOf(&w), bitsOf(&w2), "slot %d at tick %d against %+v", slot, x.now, a)
		require.EqualValues(x.t, x.columns.Works(1 << (slot % blockSlots))[slot%blockSlots], works[slot%blockSlots])
		require.Equal(x.t, w.Len(), x.columns.Bits(slot))
		require.LessOrEqual(x.t, w.Len(), most)
		x.entries++
	}
	require.Equal(x.t, want, got)
	costs := make([]uint32, x.layout.Fields()+len(x.layout.Components))
	x.columns.AddCosts(costs)
	require.Equal(x.t, x.sums(x.packed.Costs), costs)
}

// sums adds costs up by field.
func (x *columnsTest) sums(costs []Cost) []uint32 {
	sums := make([]uint32, x.layout.Fields()+len(x.layout.Components))
	for _, c := range costs {
		sums[c.Field] += c.Bits
	}
	return sums
}

// componentOfAll has fields of all kinds.
func componentOfAll(s *script) Component {
	return s.componentOf(Plain, Linear, Linear, Linear, Wrap, Quat, Reference, Counter, Flags, Bytes)
}

// componentOfSteps has up to 8 fields that are steps, mostly wide ones.
func componentOfSteps(s *script) Component {
	c := Component{Name: "c", Fields: make([]Field, 1+s.below(8))}
	for i := range c.Fields {
		f := &c.Fields[i]
		f.Name, f.Kind, f.Bits = string(rune('a'+i)), [...]Kind{Linear, Wrap}[s.below(2)], uint(maxStepBits-s.below(5))
		if s.below(4) == 0 {
			f.Bits = uint(1 + s.below(maxStepBits))
		}
		if f.Max = lowBits(f.Bits); f.Kind == Linear && s.below(2) == 0 {
			f.Max = s.number() & f.Max
		}
	}
	return c
}

// TestColumnsAreWhatPackedMakesOfSlots, whatever changes in a block, and whatever it is encoded
// against. What a block costs by field is the same as well.
func TestColumnsAreWhatPackedMakesOfSlots(t *testing.T) {
	for name, component := range map[string]func(*script) Component{
		"all": componentOfAll, "steps": componentOfSteps, "wheels": (*script).componentOfWheels,
	} {
		t.Run(name, func(t *testing.T) { checkColumns(t, component) })
	}
}

func checkColumns(t *testing.T, component func(*script) Component) {
	rng := randomOf(t)
	entries, lost, rounds := 0, 0, roundsOf(40, 20)
	for range rounds {
		s := &script{randomBytes(rng, 1<<18)}
		x := newColumnsTest(t, s, component)
		born := x.now
		for range 40 {
			x.tick(s, born)
			oldest := x.now - born - 1
			x.columns.Begin(x.now - min(oldest, 24))
			slots := ^uint64(0)
			if s.below(3) == 0 {
				slots = s.number()
			}
			for c, h := range x.histories {
				x.columns.Add(c, h, slots)
			}
			for range 6 {
				if a, ok := x.against(s, born); ok {
					a.Slots &= slots
					x.check(a)
				}
			}
		}
		entries, lost = entries+x.entries, lost+x.lost
	}
	t.Logf("%d entries, %d lost", entries, lost)
	require.Greater(t, entries, rounds*1250)
	require.Greater(t, lost, rounds*125)
}

// TestColumnsAllocateNothing once they have their memory.
func TestColumnsAllocateNothing(t *testing.T) {
	s := &script{randomBytes(randomOf(t), 1<<18)}
	x := newColumnsTest(t, s, componentOfAll)
	born := x.now
	for range 30 {
		x.tick(s, born)
	}
	of := Against{Slots: 0xffffffff, A1: x.now - 3, A2: x.now - 4, Ratio: Ratio(x.now, x.now-3, x.now-4)}
	memory := make([]byte, 1<<13)
	encode := func() {
		x.columns.Begin(of.A2)
		for c, h := range x.histories {
			x.columns.Add(c, h, ^uint64(0))
		}
		w := bitbuf.NewWriter(memory)
		for set := x.columns.Encode(of); set != 0; set &= set - 1 {
			x.columns.Write(&w, columnsFirst+bits.TrailingZeros64(set))
		}
	}
	encode()
	require.Zero(t, testing.AllocsPerRun(20, encode))
}
