package soak

import (
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"
	"unsafe"

	"github.com/mlange-42/arche/ecs"
)

// words holds all texts that the soak puts into components: Arche moves rows without the garbage
// collector's knowledge, so something else must keep them alive.
var words = func() (all []string) {
	g := newChance(1, 1)
	for i := range 400 {
		letters := "abcdefgh"
		if i%3 == 0 {
			letters = "aéß漢🙂b"
		}
		var b strings.Builder
		for n := g.IntN(pick(g, 4, 20, 60, 300)); b.Len() < n; {
			b.WriteRune([]rune(letters)[g.IntN(utf8.RuneCountInString(letters))])
		}
		all = append(all, b.String())
	}
	long := strings.Repeat("0123456789", 60)
	for i := range 60 { // long ones with small differences
		all = append(all, long[:300+5*i]+words1(i)+long[300:])
	}
	return append(all, "", "")
}()

func words1(i int) string { return fmt.Sprint(i * i) }

// cut returns the longest prefix of complete characters.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}

func textField(limit int) fieldSpec {
	return simple(fmt.Sprintf("max=%d", limit), 1,
		func(v *string, out []cell) { out[0] = cell{s: strings.Clone(*v)} },
		func(*string) {},
		func(g *chance, v *string) { *v = pick(g, words...) },
		func(want, got []cell) bool { return got[0].s == cut(want[0].s, limit) })
}

// bytesField is an array of bytes as one value.
func bytesField(g *chance) fieldSpec {
	room := 1 + g.IntN(40)
	limit := 1 + g.IntN(room)
	s := fieldSpec{
		typ: reflect.ArrayOf(room, reflect.TypeFor[byte]()), tag: fmt.Sprintf("max=%d", limit),
	}
	s.leaves = func(path string, offset uintptr, c *cells) {
		bytes := func(p unsafe.Pointer) []byte { return unsafe.Slice(at[byte](p, offset), room) }
		c.add(leaf{
			path: path, n: 1,
			read:  func(p unsafe.Pointer, out []cell) { out[0] = cell{s: string(bytes(p))} },
			drift: func(p unsafe.Pointer) { bytes(p)[0]++ },
			jump: func(g *chance, p unsafe.Pointer) {
				b := bytes(p)
				if g.one(3) {
					clear(b)
				}
				for range 1 + g.IntN(5) {
					b[g.IntN(len(b))] = pick(g, 0, byte(g.Uint32()))
				}
			},
			fits: func(want, got []cell) bool {
				return got[0].s == want[0].s[:limit]+strings.Repeat("\x00", room-limit)
			},
		})
	}
	return s
}

func boolField(*chance) fieldSpec {
	return simple("", 1, func(v *bool, out []cell) {
		if *v {
			out[0] = cell{u: 1}
		} else {
			out[0] = cell{}
		}
	}, func(v *bool) { *v = !*v }, func(g *chance, v *bool) { *v = g.one(2) }, sameCells)
}

// entityField is a reference. Other code chooses and checks its targets.
func entityField(*chance) fieldSpec {
	return fieldSpec{typ: reflect.TypeFor[ecs.Entity](), leaves: func(path string, offset uintptr, c *cells) {
		l := lift(path, offset, 1, func(v *ecs.Entity, out []cell) { out[0] = cell{e: *v} },
			func(*ecs.Entity) {}, func(g *chance, v *ecs.Entity) { *v = g.someone() }, nil)
		l.ref = true
		c.add(l)
	}}
}
