package replication

import (
	"math/rand/v2"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
	"unsafe"
	"weak"

	"github.com/arche-replicate/arche-replicate/replication/internal/field"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

func TestLongStringsAreCutBetweenCharacters(t *testing.T) {
	for _, c := range []struct {
		s    string
		max  int
		want string
	}{
		{"", 1, ""},
		{"abc", 3, "abc"},
		{"abcd", 3, "abc"},
		{"aé", 3, "aé"},
		{"aé", 2, "a"},
		{"€", 2, ""},
		{"a€€", 6, "a€"},
		{"a😀", 4, "a"},
		{"a😀", 5, "a😀"},
		{"abc😀", 6, "abc"},
		{"\x80\x80\x80\x80\x80\x80", 5, "\x80\x80\x80\x80\x80"}, // not UTF-8
		{"a\x80\x80\x80\x80\x80", 3, "a\x80\x80"},
		{"é\xff\xff", 3, "é\xff"},
	} {
		got, ok := field.CutString(c.s, c.max)
		if !utf8.ValidString(c.s) {
			require.LessOrEqual(t, len(got), c.max, "%q", c.s)
			require.True(t, strings.HasPrefix(c.s, got), "%q", c.s)
			continue
		}
		require.Equal(t, c.want, got, "%q in %d", c.s, c.max)
		require.Equal(t, c.want == c.s, ok)
	}
	rng := rand.New(rand.NewPCG(seedOf(t), 0))
	for range 5000 { // the longest prefix of full characters that fits
		s, limit := randomText(rng, 40, false), 1+rng.IntN(40)
		want := ""
		for i, r := range s {
			if end := i + utf8.RuneLen(r); end <= limit {
				want = s[:end]
			}
		}
		got, ok := field.CutString(s, limit)
		require.Equal(t, want, got, "%q in %d", s, limit)
		require.Equal(t, len(s) <= limit, ok)
	}
}

// randomText returns up to n bytes of UTF-8, or any bytes if wild.
func randomText(rng *rand.Rand, n int, wild bool) string {
	var b []byte
	for end := rng.IntN(n + 1); len(b) < end; {
		switch r := rng.IntN(8); {
		case wild && r < 3:
			b = append(b, byte(rng.Uint32()))
		case r == 0:
			b = utf8.AppendRune(b, []rune("aé€😀\x00")[rng.IntN(5)])
		default:
			b = append(b, byte('a'+rng.IntN(26)))
		}
	}
	if !wild {
		for len(b) > n || !utf8.Valid(b) {
			b = b[:len(b)-1]
		}
	}
	return string(b[:min(len(b), n)])
}

type textName string

// textBox has texts of all sorts, with neighbours so that a wrong stride or width shows.
type textBox struct {
	Before uint8
	S      string `repl:"max=9"`
	Mid    uint16
	Names  [2]textName `repl:"max=4"`
	Odd    uint8
	B      [7]byte         `repl:"max=7"`
	C      [2][8]byte      `repl:"max=5"`
	D      [1]textByteType `repl:"max=1"`
	Own    string          `repl:"-"`
	After  uint32
}

type textByteType byte

func TestTextsInColumns(t *testing.T) {
	c := componentOf(t, reflect.TypeFor[textBox]())
	require.Equal(t, []int{1, 3, 4}, c.Strings)
	rng := newColumnRand(t)
	const rows = 300
	values := make([]textBox, rows)
	fill := func(b []byte) {
		copy(b, randomText(rng, len(b), true))
	}
	for i := range values {
		v := &values[i]
		*v = textBox{Before: uint8(rng.Uint32()), Mid: uint16(rng.Uint32()), Odd: uint8(rng.Uint32()), After: rng.Uint32(), Own: "own"}
		v.S = randomText(rng, 14, rng.IntN(2) == 0)
		for j := range v.Names {
			v.Names[j] = textName(randomText(rng, 6, false))
		}
		fill(v.B[:])
		fill(v.C[0][:])
		fill(v.C[1][:])
		v.D[0] = textByteType(rng.IntN(2))
	}
	dst := slices.Repeat([]uint32{0xdeadbeef}, rows*c.Words+1)
	clamped := c.ReadColumn(dst, unsafe.Pointer(&values[0]), rows)
	require.Equal(t, uint32(0xdeadbeef), dst[rows*c.Words], "wrote behind the last row")

	// The oracle: the expected value, text by text.
	wantClamped := 0
	cut := func(s string, limit int) string {
		got, ok := field.CutString(s, limit)
		if !ok {
			wantClamped++
		}
		return got
	}
	cutArray := func(b []byte, limit int) string {
		s := strings.TrimRight(string(b), "\x00")
		if len(s) > limit {
			wantClamped++
			s = strings.TrimRight(s[:limit], "\x00")
		}
		return s
	}
	for i := range values {
		v, row := &values[i], dst[i*c.Words:][:c.Words]
		want := *v
		want.S = cut(v.S, 9)
		for j := range v.Names {
			want.Names[j] = textName(cut(string(v.Names[j]), 4))
		}
		want.B, want.C = [7]byte{}, [2][8]byte{}
		copy(want.B[:], cutArray(v.B[:], 7))
		for j := range v.C {
			copy(want.C[j][:], cutArray(v.C[j][:], 5))
		}
		require.True(t, c.ValidRow(row))
		require.True(t, c.Layout.Valid(row))
		back := values[rng.IntN(rows)]
		back.Own = "own"
		c.Write(unsafe.Pointer(&back), row)
		require.Equal(t, want, back)
		again := make([]uint32, c.Words)
		require.Zero(t, c.ReadColumn(again, unsafe.Pointer(&back), 1))
		require.Equal(t, row, again, "what was written reads as the row")
		if err := c.Fits(unsafe.Pointer(v)); (err == nil) != (c.ReadColumn(again, unsafe.Pointer(v), 1) == 0) {
			t.Fatalf("%+v: %v", v, err)
		}
	}
	require.Equal(t, wantClamped, clamped)
	require.NotZero(t, clamped)

	// Rows from the wire are valid if and only if reading what they write returns them.
	valid, wrong := 0, 0
	for range 20_000 {
		row := slices.Clone(dst[rng.IntN(rows)*c.Words:][:c.Words])
		for range 1 + rng.IntN(2) {
			col := &c.Columns[1+rng.IntN(len(c.Columns)-2)]
			at := col.Word + rng.IntN(col.Codec.Words())
			row[at] ^= 1 << rng.UintN(32) >> rng.UintN(24)
		}
		for _, i := range []int{0, 2, 5} { // the other columns stay valid
			row[c.Columns[i].Word] &= uint32(c.Columns[i].Codec.Max)
		}
		var back textBox
		c.Write(unsafe.Pointer(&back), row)
		again := make([]uint32, c.Words)
		c.ReadColumn(again, unsafe.Pointer(&back), 1)
		if ok := c.ValidRow(row); ok != slices.Equal(row, again) {
			t.Fatalf("validRow returns %v for %x, which reads as %x", ok, row, again)
		} else if ok {
			valid++
		} else {
			wrong++
		}
	}
	require.NotZero(t, valid)
	require.NotZero(t, wrong)
}

func TestTextsThatDoNotFitAreNamed(t *testing.T) {
	c := componentOf(t, reflect.TypeFor[textBox]())
	require.NoError(t, c.Fits(unsafe.Pointer(&textBox{S: "123456789", C: [2][8]byte{{4: 1}}, Own: "as long as you like"})))
	for want, v := range map[string]textBox{
		"replication: P.S: the string has 10 bytes, and max is 9: shorten it, or raise max in the tag":       {S: "1234567890"},
		"replication: P.Names[1]: the string has 6 bytes, and max is 4: shorten it, or raise max in the tag": {Names: [2]textName{"", "€€"}},
		"replication: P.C[1]: the array has 6 bytes, and max is 5: shorten it, or raise max in the tag":      {C: [2][8]byte{{}, {5: 1}}},
	} {
		require.EqualError(t, c.Fits(unsafe.Pointer(&v)), want)
	}
}

func TestWritingTheSameTextDoesNotAllocate(t *testing.T) {
	skipAllocationTest(t)
	c := componentOf(t, reflect.TypeFor[textBox]())
	v := textBox{S: "a name", Names: [2]textName{"b", ""}, B: [7]byte{1, 2, 3}}
	row := make([]uint32, c.Words)
	p := unsafe.Pointer(&v)
	c.ReadColumn(row, p, 1)
	require.Zero(t, testing.AllocsPerRun(10, func() { c.Write(p, row) }))
	require.Zero(t, testing.AllocsPerRun(10, func() { c.ReadColumn(row, p, 1) }))
	other := textBox{S: "a game", Names: v.Names, B: v.B}
	rows := [2][]uint32{row, make([]uint32, c.Words)}
	c.ReadColumn(rows[1], unsafe.Pointer(&other), 1)
	i := 0
	require.EqualValues(t, 1, testing.AllocsPerRun(10, func() { i ^= 1; c.Write(p, rows[i]) }), "for the string that is another one")
}

// longString returns a string with memory of its own, which short ones may not have.
func longString(prefix string) string { return strings.Clone(prefix + strings.Repeat("x", 40)) }

type textLabel struct {
	Text string `repl:"max=64"`
}

// TestStringsWithSharedBytesAreHeld: a block of rows is idle if its bytes did not change. Bytes of
// a string are only the address of its characters, and freed memory may be reused for other
// characters. So the capture retains the strings.
// which. Memory that is free again may be used for other characters: so what the bytes point to is held.
func TestStringsWithSharedBytesAreHeld(t *testing.T) {
	t.Run("alone", func(t *testing.T) { checkKeptString(t, func(v *textLabel) *string { return &v.Text }) })
	t.Run("beside a reference", func(t *testing.T) { checkKeptString(t, func(v *textPointer) *string { return &v.Text }) })
}

func checkKeptString[T any](t *testing.T, text func(v *T) *string) {
	s := NewSchema()
	Register[T](s)
	x := connectedWire(t, s)
	id := ecs.ComponentID[T](x.world)
	label := text((*T)(x.world.Get(x.spawn(id), id)))
	*label = longString("first")
	first := weak.Make(unsafe.StringData(*label))
	x.rounds(40) // idle
	*label = longString("second")
	runtime.GC()
	require.NotNil(t, first.Value(), "a new string might come to lie where the first one was, and nobody would see it")
	x.rounds(40)
	runtime.GC()
	require.Nil(t, first.Value(), "of no use any more")
	runtime.KeepAlive(x)
}

// textPointer is captured later than others, because it has a reference.
type textPointer struct {
	Text string `repl:"max=64"`
	To   ecs.Entity
}

// TestStringsOfRemovedComponentsAreNotHeld: strings of components that the user removed are
// released.
func TestStringsOfRemovedComponentsAreNotHeld(t *testing.T) {
	s := NewSchema()
	Register[textPointer](s)
	Register[textLabel](s)
	x := connectedWire(t, s)
	label, pointer := ecs.ComponentID[textLabel](x.world), ecs.ComponentID[textPointer](x.world)
	e := x.spawn(label, pointer)
	set := func(text string) {
		(*textLabel)(x.world.Get(e, label)).Text = text
		(*textPointer)(x.world.Get(e, pointer)).Text = text
	}
	set("one")
	x.rounds(3)
	id, _ := x.server.NetID(e)
	m := x.client.apply.View.Replicas.At(id.Slot)
	require.Equal(t, []string{"one", "one"}, m.Strings)

	x.mirror.Remove(m.Entity, ecs.ComponentID[textLabel](x.mirror))
	x.world.Remove(e, label)
	x.rounds(3)
	require.Equal(t, []string{"one", ""}, m.Strings)

	x.mirror.RemoveEntity(m.Entity)
	(*textPointer)(x.world.Get(e, pointer)).Text = "two"
	x.rounds(3)
	require.Nil(t, m.Strings)
}

// TestShownStringsAreHeld: Arche moves rows without the garbage collector's knowledge. A string
// written by the client stays alive as long as it is shown, even if the collector does not see it
// there.
func TestShownStringsAreHeld(t *testing.T) {
	s := NewSchema()
	Register[textLabel](s)
	x := connectedWire(t, s)
	id, mirrorID := ecs.ComponentID[textLabel](x.world), ecs.ComponentID[textLabel](x.mirror)
	e := x.spawn(id)
	label := (*textLabel)(x.world.Get(e, id))
	label.Text = longString("first")
	x.rounds(5)
	m, ok := x.mirrored(e)
	require.True(t, ok)
	shown := (*textLabel)(x.mirror.Get(m, mirrorID))
	require.Equal(t, label.Text, shown.Text)
	require.NotSame(t, unsafe.StringData(label.Text), unsafe.StringData(shown.Text))
	first := weak.Make(unsafe.StringData(shown.Text))
	shown.Text = "" // as a move that the collector does not see
	runtime.GC()
	require.NotNil(t, first.Value())

	label.Text = longString("second")
	x.rounds(5)
	runtime.GC()
	require.Nil(t, first.Value(), "shown no more")

	shown = (*textLabel)(x.mirror.Get(m, mirrorID))
	second := weak.Make(unsafe.StringData(shown.Text))
	x.world.Remove(e, id)
	x.rounds(5)
	runtime.GC()
	require.Nil(t, second.Value(), "the component is gone")
	runtime.KeepAlive(x)
}

// TestStringsSurviveTheGarbageCollector: entities with names spawn, despawn and change names,
// components and so their rows, while the garbage collector runs all the time.
func TestStringsSurviveTheGarbageCollector(t *testing.T) {
	ticks := 600
	if testing.Short() {
		ticks = 150
	}
	defer debug.SetGCPercent(debug.SetGCPercent(5))
	seed := seedOf(t)
	rng := rand.New(rand.NewPCG(seed, 3))
	s := NewSchema()
	Register[textLabel](s)
	Register[tPosition](s)
	x := connectedWire(t, s)
	label, position := ecs.ComponentID[textLabel](x.world), ecs.ComponentID[tPosition](x.world)
	mirrorLabel := ecs.ComponentID[textLabel](x.mirror)
	want := map[ecs.Entity]string{}
	var entities []ecs.Entity
	for tick := range ticks {
		for range 10 {
			switch i := rng.IntN(len(entities) + 1); {
			case i == len(entities) || rng.IntN(4) == 0:
				e := x.spawn(label)
				entities = append(entities, e)
				fallthrough
			case rng.IntN(3) == 0:
				e := entities[len(entities)-1]
				want[e] = longString(randomText(rng, 20, false))
				(*textLabel)(x.world.Get(e, label)).Text = strings.Clone(want[e])
			case rng.IntN(3) == 0:
				x.world.RemoveEntity(entities[i])
				delete(want, entities[i])
				entities[i] = entities[len(entities)-1]
				entities = entities[:len(entities)-1]
			case x.world.Has(entities[i], position):
				x.world.Remove(entities[i], position)
			default:
				x.world.Add(entities[i], position)
			}
		}
		x.round()
		if tick%10 == 0 {
			runtime.GC()
		}
		if tick%20 != 0 {
			continue
		}
		x.rounds(3)
		for e, text := range want {
			m, ok := x.mirrored(e)
			require.True(t, ok)
			require.Equal(t, text, (*textLabel)(x.mirror.Get(m, mirrorLabel)).Text)
		}
	}
}

func TestTextsBeyondTheirBoundAreCutAndCounted(t *testing.T) {
	s := NewSchema()
	Register[textLabel](s, Field("Text", "max=5"))
	x := connectedWire(t, s)
	id, mirrorID := ecs.ComponentID[textLabel](x.world), ecs.ComponentID[textLabel](x.mirror)
	e := x.spawn(id)
	label := (*textLabel)(x.world.Get(e, id))
	label.Text = "1234é"
	x.rounds(4)
	m, ok := x.mirrored(e)
	require.True(t, ok)
	require.Equal(t, "1234", (*textLabel)(x.mirror.Get(m, mirrorID)).Text, "between characters")
	require.EqualValues(t, 4, x.server.Stats().Clamped, "at every capture")
	label.Text = "123é"
	x.rounds(4)
	require.Equal(t, "123é", (*textLabel)(x.mirror.Get(m, mirrorID)).Text)
	require.EqualValues(t, 4, x.server.Stats().Clamped)
}

// BenchmarkText reads and writes a string of 12 bytes with a limit of 32.
func BenchmarkText(b *testing.B) {
	type named struct {
		Name string `repl:"max=32"`
	}
	s := NewSchema()
	Register[named](s)
	c := &s.raw.Components[0]
	values := []named{{"twelve bytes"}, {"twelve bites"}}
	rows := make([]uint32, 2*c.Words)
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			c.ReadColumn(rows, unsafe.Pointer(&values[0]), 2)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/2, "ns/row")
	})
	b.Run("write same", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			c.Write(unsafe.Pointer(&values[0]), rows[:c.Words])
		}
	})
	b.Run("write other", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i ^= 1 {
			c.Write(unsafe.Pointer(&values[0]), rows[i*c.Words:][:c.Words])
		}
	})
}
