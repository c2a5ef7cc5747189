package replication

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/field"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// kernelCase is a component type whose kernels are compared with the reference.
type kernelCase struct {
	typ     reflect.Type
	options []ComponentOption
}

// kernelField makes a case of a field type with a tag. The field appears twice, alone and in an
// array, among neighbours that reveal a wrong offset, stride or width.
func kernelField(typ reflect.Type, tag string) kernelCase {
	tag = `repl:"` + tag + `"`
	return kernelCase{typ: reflect.StructOf([]reflect.StructField{
		{Name: "Before", Type: reflect.TypeFor[uint8]()},
		{Name: "X", Type: typ, Tag: reflect.StructTag(tag)},
		{Name: "Skipped", Type: reflect.TypeFor[uint8](), Tag: `repl:"-"`},
		{Name: "Y", Type: reflect.ArrayOf(2, typ), Tag: reflect.StructTag(tag)},
		{Name: "After", Type: reflect.TypeFor[uint8]()},
	})}
}

func kernelType[T any](options ...ComponentOption) kernelCase {
	return kernelCase{reflect.TypeFor[T](), options}
}

// kernelCases returns every codec with every type of number it supports, and components that mix
// them.
func kernelCases() (cases []kernelCase) {
	for _, sc := range scalarCases() {
		cases = append(cases, kernelField(sc.typ, sc.tag))
	}
	field := func(tag string, types ...reflect.Type) {
		for _, typ := range types {
			cases = append(cases, kernelField(typ, tag))
		}
	}
	integers := []reflect.Type{
		reflect.TypeFor[int8](), reflect.TypeFor[int16](), reflect.TypeFor[int32](), reflect.TypeFor[int64](), reflect.TypeFor[int](),
		reflect.TypeFor[uint8](), reflect.TypeFor[uint16](), reflect.TypeFor[uint32](), reflect.TypeFor[uint64](), reflect.TypeFor[uint](),
	}
	field("range=3:100", integers...)
	field("range=3:100,step=7", integers...)
	field("range=3:100,wrap", integers...)
	field("flags=5", integers...)
	for _, typ := range integers {
		if typ.Kind() == reflect.Int64 || typ.Kind() == reflect.Uint64 { // codes of two words
			field("range=0:9000000000000000,step=5", typ)
			field("range=0:9000000000000000,wrap", typ)
			field("flags=40", typ)
		}
	}
	for _, typ := range []reflect.Type{reflect.TypeFor[float32](), reflect.TypeFor[float64]()} {
		for _, tag := range []string{
			"raw", "range=-100:100,step=0.01", "range=-100:100,precision=0.01", "half", "angle,bits=10",
		} {
			field(tag, typ)
		}
		for _, bits := range []int{2, 9, 15} {
			field(fmt.Sprintf("unit,bits=%d", bits), reflect.ArrayOf(3, typ))
			field(fmt.Sprintf("quat,bits=%d", bits), reflect.ArrayOf(4, typ))
		}
	}
	for _, n := range []int{1, 3, 4, 9, 30} {
		field(fmt.Sprintf("max=%d", n), reflect.TypeFor[string](), reflect.TypeFor[textName](), reflect.TypeFor[[30]byte]())
	}
	return append(cases,
		kernelType[captureInts](), kernelType[captureFloats](), kernelType[captureVectors](), kernelType[captureOrbit](), kernelType[captureTag](),
		kernelType[schemaShip](), kernelType[textBox](), kernelType[rTarget](), kernelType[rSquad](), kernelType[rChildOf](),
		kernelType[cvShip](With(cvTime{})), kernelType[cvPlan](As(cvToGoal, cvFromGoal)), kernelType[cvPilot](As(cvToGoal, cvFromGoal)),
		kernelType[schemaVec](With(cvTiny{})), kernelType[[3]schemaVec](With(cvTiny{})),
		kernelType[benchPosition](), kernelType[kernelThrees](),
	)
}

// kernelThrees has fields that are read three at a time, and such that only seem to.
type kernelThrees struct {
	Way      [7]float32 `repl:"range=-50:50,step=0.25"`
	A        float32    `repl:"range=-50:50,step=0.25"`
	B        float32    `repl:"range=-50:50,step=0.5"`
	C        float32    `repl:"range=-50:50,step=0.25"`
	X        float32    `repl:"range=-50:50,step=0.25"`
	Between  int32      `repl:"-"`
	Y, Z     float32    `repl:"range=-50:50,step=0.25"`
	W        float32    `repl:"range=-50:50,step=0.25"`
	Doubles  [3]float64 `repl:"range=-50:50,step=0.25"`
	Fine     [3]float64 `repl:"range=-1000000:1000000,step=0.0001"`
	Fourteen [4]float32 `repl:"range=-1000:1000,step=0.01"`
}

// kernelValues makes n random values of a type. References are to one of the given entities.
func kernelValues(rng *rand.Rand, typ reflect.Type, n int, entities []ecs.Entity) reflect.Value {
	values := reflect.MakeSlice(reflect.SliceOf(typ), n, n)
	for i := range n {
		setKernelValue(values.Index(i), rng, entities)
	}
	return values
}

func setKernelValue(v reflect.Value, rng *rand.Rand, entities []ecs.Entity) {
	if !v.CanSet() {
		return
	}
	switch x := v.Addr().Interface().(type) {
	case *ecs.Entity:
		*x = entities[rng.IntN(len(entities))]
		return
	case *time.Time:
		*x = time.Unix(rng.Int64N(1<<41), 0).UTC() // half of them beyond the largest code
		return
	case *cvPlan:
		x.steps = make([]cvStep, rng.IntN(4))
		for i := range x.steps {
			x.steps[i] = cvStep{float32(rng.NormFloat64() * 80), float32(rng.NormFloat64() * 80), randomText(rng, 12, true)}
		}
		return
	case *schemaVec: // cvTiny codes it as integers
		*x = schemaVec{float32(rng.IntN(12)), float32(rng.IntN(256)), float32(rng.IntN(1 << 24))}
		return
	}
	switch v.Kind() {
	case reflect.Struct, reflect.Array:
		for i := range numParts(v) {
			setKernelValue(partOf(v, i), rng, entities)
		}
	case reflect.String:
		v.SetString(randomText(rng, 34, rng.IntN(2) == 0))
	case reflect.Pointer, reflect.Slice, reflect.Map: // not replicated
	default:
		setRandom(v, rng)
	}
}

// sameValue compares values to the last bit, including what they point to.
func sameValue(a, b reflect.Value) bool {
	if t := a.Type(); !schema.HasPointers(t) && a.CanAddr() && b.CanAddr() {
		return slices.Equal(memoryOf(a), memoryOf(b)) // including padding
	}
	switch a.Kind() {
	case reflect.Struct, reflect.Array, reflect.Slice:
		if a.Kind() == reflect.Slice && a.Len() != b.Len() {
			return false
		}
		for i := range numParts(a) {
			if !sameValue(partOf(a, i), partOf(b, i)) {
				return false
			}
		}
		return true
	case reflect.Map:
		return a.UnsafePointer() == b.UnsafePointer()
	case reflect.Float32, reflect.Float64:
		return math.Float64bits(a.Float()) == math.Float64bits(b.Float())
	}
	return a.Equal(b)
}

func memoryOf(v reflect.Value) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(v.UnsafeAddr())), v.Type().Size())
}

// TestKernelsMatchTheReference: the same rows, counts, written values and errors.
func TestKernelsMatchTheReference(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
	const n = 2*schema.ReadBlock + 88
	rng := newColumnRand(t)
	w := ecs.NewWorld()
	var entities []ecs.Entity
	for i := range 200 {
		entities = append(entities, w.NewEntity())
		if i%3 == 0 {
			w.RemoveEntity(entities[i])
			entities[i] = w.NewEntity() // of a later generation
		}
	}
	met := map[string]bool{}
	for _, kc := range kernelCases() {
		c := componentOf(t, kc.typ, kc.options...)
		for i := range c.Columns {
			met[opName(c.Columns[i].Codec)] = true
		}
		name := strings.Join(c.Lines, "; ")
		values := kernelValues(rng, kc.typ, n, entities)
		rows := checkReads(t, name, c, values)
		checkWrites(t, name, c, values, rows, rng)
		checkTextKernels(t, name, c, values)
		checkCopies(t, name, c, values, rng)
		checkReferenceKernels(t, name, c, values, entities, rng)
	}
	require.Equal(t, allOps(), met, "kernels that are compared")
}

// opName names the properties that select the kernel of a codec.
func opName(q *field.Codec) string {
	name := fmt.Sprint(q.Op, " ", q.Kind)
	if q.Bits > 32 && q.Op != field.OpRaw {
		name += " wide"
	}
	return name
}

// allOps returns the names of all of them.
func allOps() map[string]bool {
	all := map[string]bool{}
	add := func(op field.Op, bits uint, kinds ...reflect.Kind) {
		for _, kind := range kinds {
			all[opName(&field.Codec{Op: op, Bits: bits, Kind: kind})] = true
		}
	}
	signed := []reflect.Kind{reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Int}
	unsigned := []reflect.Kind{reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uint}
	for op := range field.OpCode + 1 {
		switch op {
		case field.OpBool:
			add(op, 1, reflect.Bool)
		case field.OpInt:
			add(op, 1, signed...)
			add(op, 64, reflect.Int64, reflect.Int)
		case field.OpUint:
			add(op, 1, unsigned...)
			add(op, 64, reflect.Uint64, reflect.Uint)
		case field.OpIntStep, field.OpIntWrap, field.OpFlags:
			add(op, 1, append(signed, unsigned...)...)
			add(op, 64, reflect.Int64, reflect.Uint64)
		case field.OpFixed, field.OpFloat, field.OpAngle:
			add(op, 1, reflect.Float32, reflect.Float64)
			add(op, 64, reflect.Float64)
		case field.OpRaw, field.OpHalf, field.OpUnit, field.OpQuat:
			add(op, 1, reflect.Float32, reflect.Float64)
		case field.OpEntity, field.OpRelation:
			add(op, 64, reflect.Struct)
		case field.OpString:
			add(op, 1, reflect.String)
		case field.OpBytes:
			add(op, 1, reflect.Array)
		case field.OpCode:
			add(op, 1, reflect.Invalid)
			add(op, 64, reflect.Invalid)
		default:
			panic(fmt.Sprintf("which kinds has op %d?", op))
		}
	}
	return all
}

// checkReads returns the rows of the values.
func checkReads(t *testing.T, name string, c *schema.Component, values reflect.Value) []uint32 {
	n, p := values.Len(), values.UnsafePointer()
	var want []uint32
	for _, count := range []int{0, 1, snapshot.CaptureRows, schema.ReadBlock, schema.ReadBlock + 1, n} {
		got := slices.Repeat([]uint32{0xdeadbeef}, count*c.Words+1)
		want = slices.Clone(got)
		wantClamped := slowKernels{c}.readColumn(want, p, count)
		require.Equal(t, wantClamped, c.ReadColumn(got, p, count), "%s: clamped of %d values", name, count)
		require.Equal(t, want, got, "%s: rows of %d values", name, count)
	}
	return want
}

// checkWrites writes rows over other values, and also words that come from no quantiser.
func checkWrites(t *testing.T, name string, c *schema.Component, values reflect.Value, rows []uint32, rng *rand.Rand) {
	n := values.Len()
	pair := reflect.MakeSlice(values.Type(), 2, 2)
	for i := range 200 {
		row := slices.Clone(rows[rng.IntN(n)*c.Words:][:c.Words])
		for j := range c.Columns {
			if col := &c.Columns[j]; i%2 == 1 && !col.Codec.IsText() {
				for k := range col.Codec.Words() {
					row[col.Word+k] = rng.Uint32() >> rng.UintN(32)
				}
			}
		}
		old := values.Index(rng.IntN(n))
		pair.Index(0).Set(old)
		pair.Index(1).Set(old)
		c.Write(pair.Index(0).Addr().UnsafePointer(), row)
		slowKernels{c}.write(pair.Index(1).Addr().UnsafePointer(), row)
		require.True(t, sameValue(pair.Index(1), pair.Index(0)), "%s: %x over %v became %v, want %v", name, row, old, pair.Index(0), pair.Index(1))
		if c.Layout.Valid(row) {
			require.Equal(t, c.ValidRow(row), c.ValidDecoded(row), "%s: %x", name, row)
		}
		if c.Simple() {
			pair.Index(0).Set(old)
			c.WriteRows([]schema.Written{{At: pair.Index(0).Addr().UnsafePointer(), Row: row}})
			require.True(t, sameValue(pair.Index(1), pair.Index(0)), "%s: %x over %v became %v, want %v, with other rows",
				name, row, old, pair.Index(0), pair.Index(1))
		}
	}
}

func checkTextKernels(t *testing.T, name string, c *schema.Component, values reflect.Value) {
	n := values.Len()
	for i := range n {
		p := values.Index(i).Addr().UnsafePointer()
		require.Equal(t, slowKernels{c}.fits(p), c.Fits(p), name)
	}
	got, want := make([]string, n*len(c.Strings)), make([]string, n*len(c.Strings))
	c.HoldStrings(got, values.UnsafePointer(), n)
	slowKernels{c}.holdStrings(want, values.UnsafePointer(), n)
	require.Equal(t, want, got, name)
}

// checkCopies checks that copies of values, and their bytes, reflect every change of a value.
func checkCopies(t *testing.T, name string, c *schema.Component, values reflect.Value, rng *rand.Rand) {
	n := snapshot.CaptureRows
	room, want := c.Room(n), reflect.MakeSlice(values.Type(), n, n)
	for i := range n {
		p := values.Index(rng.IntN(values.Len())).Addr().UnsafePointer()
		c.CopyTo(room, i, p)
		slowKernels{c}.copyTo(want.UnsafePointer(), i, p)
	}
	if c.Words > 0 && c.Size > 0 {
		got := reflect.SliceAt(c.Typ, room, n)
		for i := range n {
			require.True(t, sameValue(want.Index(i), got.Index(i)), "%s: copied", name)
		}
	}

	if c.Bytes() == 0 {
		require.Equal(t, c.Words == 0 && !c.Volatile, c.SameBytes(nil, values.UnsafePointer(), n), "%s: without bytes", name)
		return
	}
	p, kept := want.UnsafePointer(), make([]byte, n*int(c.Bytes()))
	c.KeepBytes(kept, p, n)
	require.True(t, c.SameBytes(kept, p, n), name)
	rows, now := make([]uint32, n*c.Words), make([]uint32, n*c.Words)
	slowKernels{c}.readColumn(rows, p, n)
	old := reflect.New(c.Typ).Elem()
	for i := range n {
		old.Set(want.Index(i))
		want.Index(i).Set(values.Index(rng.IntN(values.Len())))
		slowKernels{c}.readColumn(now, p, n)
		require.True(t, slices.Equal(rows, now) || !c.SameBytes(kept, p, n), "%s: value %d is another one", name, i)
		want.Index(i).Set(old)
		require.True(t, c.SameBytes(kept, p, n), name)
	}
}

func checkReferenceKernels(t *testing.T, name string, c *schema.Component, values reflect.Value, entities []ecs.Entity, rng *rand.Rand) {
	n := values.Len()
	all, nobody := bitset.Set{}.Grown(1000), bitset.Set{}.Grown(1000)
	for _, e := range entities {
		all.Add(int(e.ID()))
	}
	refers := slices.ContainsFunc(c.References, func(k int) bool { return c.Columns[k].Codec.Op == field.OpEntity })
	require.Equal(t, refers, c.RefersToAny(values.UnsafePointer(), n, all), name)
	require.False(t, c.RefersToAny(values.UnsafePointer(), n, nobody), name)
	for i := range n {
		one := slices.Clone(nobody)
		one.Add(int(entities[rng.IntN(len(entities))].ID()))
		first := rng.IntN(n)
		p, count := values.Index(first).Addr().UnsafePointer(), 1+rng.IntN(min(n-first, 2*snapshot.CaptureRows))
		require.Equal(t, slowKernels{c}.refersToAny(p, count, one), c.RefersToAny(p, count, one), "%s: round %d", name, i)
	}
	pair := reflect.MakeSlice(values.Type(), 2, 2)
	for _, k := range c.References {
		if c.Columns[k].Codec.Op != field.OpEntity {
			continue
		}
		for i := range n {
			p := values.Index(i).Addr().UnsafePointer()
			require.Equal(t, slowKernels{c}.readEntity(p, k), c.ReadEntity(p, k), name)
		}
		pair.Index(0).Set(values.Index(0))
		pair.Index(1).Set(values.Index(0))
		e := entities[rng.IntN(len(entities))]
		c.WriteEntity(pair.Index(0).Addr().UnsafePointer(), k, e)
		slowKernels{c}.writeEntity(pair.Index(1).Addr().UnsafePointer(), k, e)
		require.True(t, sameValue(pair.Index(1), pair.Index(0)), name)
	}
}

func TestKernelsDoNotAllocate(t *testing.T) {
	c := componentOf(t, reflect.TypeFor[schemaShip]())
	values := make([]schemaShip, 300)
	p := reflect.ValueOf(values).UnsafePointer()
	dst := make([]uint32, len(values)*c.Words)
	require.Zero(t, testing.AllocsPerRun(10, func() { c.ReadColumn(dst, p, len(values)) }))
	require.Zero(t, testing.AllocsPerRun(10, func() { c.Write(p, dst[:c.Words]) }))
	require.Zero(t, testing.AllocsPerRun(10, func() { c.ValidRow(dst[:c.Words]) }))
}
