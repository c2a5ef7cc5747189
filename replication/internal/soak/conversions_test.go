package soak

import (
	"math"
	"strings"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication"
)

// A mood can't be replicated: it has pointers and unexported fields. A moodSeen is sent in its
// place.
type mood struct {
	at   *[2]float64
	text string
	kind uint8
}

type moodSeen struct {
	X, Y float32 `repl:"range=-100:100,step=0.5"`
	Text string  `repl:"max=12"`
	Kind uint8   `repl:"enum=5"`
}

// places holds the values that moods of the server point to, because Arche's memory does not keep
// them alive; see words.
var places = func() (all [512][2]float64) {
	g := newChance(2, 2)
	for i := range all {
		all[i] = [2]float64{g.between(-110, 110), g.between(-110, 110)}
	}
	return all
}()

func seeMood(from *mood, to *moodSeen) {
	if from.at != nil {
		to.X, to.Y = float32(from.at[0]), float32(from.at[1])
	}
	to.Text, to.Kind = from.text, from.kind
}

func setMood(from *moodSeen, to *mood) {
	to.at = &[2]float64{float64(from.X), float64(from.Y)}
	to.text, to.kind = from.Text, from.Kind
}

var moodStep = stepRule[float32](-100, 100, 0.5)

func moodFits(want, got []cell) bool {
	return moodStep(want[0:1], got[0:1]) && moodStep(want[1:2], got[1:2]) && got[2].s == cut(want[2].s, 12) &&
		got[3].u == min(want[3].u, 4)
}

func readMoodSeen(s *moodSeen, out []cell) {
	readFloat(&s.X, out[0:])
	readFloat(&s.Y, out[1:])
	out[2], out[3] = cell{s: strings.Clone(s.Text)}, cell{u: uint64(s.Kind)}
}

// moodOption replicates moods wherever they are.
func moodOption() replication.ComponentOption { return replication.As(seeMood, setMood) }

// asField is a field that is sent as another type.
func asField(*chance) fieldSpec {
	s := simple("", 4, func(v *mood, out []cell) {
		var seen moodSeen
		seeMood(v, &seen)
		readMoodSeen(&seen, out)
	}, func(v *mood) { v.kind = (v.kind + 1) % 5 }, func(g *chance, v *mood) {
		v.at = &places[g.IntN(len(places))]
		v.text, v.kind = pick(g, words...), uint8(g.IntN(6))
		if g.one(8) {
			v.at = nil
		}
	}, moodFits)
	s.opts = map[string]replication.ComponentOption{"as": moodOption()}
	return s
}

// twinField is the field that the other end may have in place of a mood.
func twinField() fieldSpec {
	return simple("", 4, readMoodSeen, func(*moodSeen) {}, func(*chance, *moodSeen) {}, moodFits)
}

// A stamp is replicated by a codec.
type stamp struct {
	secs int64
	frac uint16
}

const stampBits = 36

type stampCodec struct{}

func (stampCodec) Fields() []replication.CodecField {
	return []replication.CodecField{{Name: "secs", Bits: stampBits, Kind: delta.Linear}, {Name: "frac", Bits: 10, Max: 999}}
}

func (stampCodec) Encode(v *stamp, codes []uint64) {
	codes[0], codes[1] = uint64(max(v.secs, 0)), uint64(v.frac)
}

func (stampCodec) Decode(codes []uint64, v *stamp) {
	v.secs, v.frac = int64(codes[0]), uint16(codes[1])
}

// withField is a field with a codec.
func withField(*chance) fieldSpec {
	s := simple("", 2, func(v *stamp, out []cell) {
		out[0], out[1] = cell{u: uint64(max(v.secs, 0))}, cell{u: uint64(v.frac)}
	}, func(v *stamp) { v.secs += 7 }, func(g *chance, v *stamp) {
		v.secs, v.frac = g.Int64N(1<<stampBits), uint16(g.IntN(1000))
		if g.one(8) {
			v.secs, v.frac = pick[int64](g, -5, math.MaxInt64, 1<<stampBits), uint16(g.IntN(3000))
		}
	}, func(want, got []cell) bool {
		return got[0].u == min(want[0].u, 1<<stampBits-1) && got[1].u == min(want[1].u, 999)
	})
	s.opts = map[string]replication.ComponentOption{"with": replication.With(stampCodec{})}
	return s
}
