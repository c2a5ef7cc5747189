package receive

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/compact"
	"github.com/arche-replicate/arche-replicate/replication/internal/counters"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// emptySchema has no components.
func emptySchema() *schema.Schema {
	s := new(schema.Schema)
	s.Freeze()
	return s
}

// newTestReceiver returns a receiver in a session.
func newTestReceiver(slots uint32, useCompact bool) *Receiver {
	rc := NewReceiver(emptySchema(), new(counters.ClientCounters), slots, wire.ComponentSet{})
	rc.Begin(&wire.Welcome{Window: 64, Tick: 10, Compact: useCompact})
	return &rc
}

// TestPartsAreBounded: a part is of a state of at most the largest size, lies in it, and has some bytes, also where
// index times size wraps around.
func TestPartsAreBounded(t *testing.T) {
	for _, c := range []struct {
		name                    string
		age, total, size, index uint64
		ok                      bool
	}{
		{"the only one", 0, 1, 1, 0, true},
		{"the last one", 0, 100, 33, 3, true},
		{"behind the last one", 0, 100, 25, 4, false},
		{"the largest state", 0, MaxLargeBytes, wire.MaxMTU, 0, true},
		{"a larger state", 0, MaxLargeBytes + 1, wire.MaxMTU, 0, false},
		{"an endless state", 0, 1<<64 - 2, 1, 0, false},
		{"larger than a packet", 0, MaxLargeBytes, wire.MaxMTU + 1, 0, false},
		{"empty", 0, 100, 0, 0, false},
		{"of an empty state", 0, 0, 1, 0, false},
		{"the oldest one", 1<<31 - 1, 1, 1, 0, true},
		{"one of the future", 1 << 31, 1, 1, 0, false},
		{"one that wraps around to the first one", 0, 100, 2, 1 << 63, false},
	} {
		require.Equal(t, c.ok, validPart(c.age, c.total, c.size, c.index), c.name)
	}
}

// part returns a part with one byte of a state of two.
func part(slot uint32, tick delta.Tick, index int) *stagedPart {
	return &stagedPart{slot: slot, tick: tick, total: 2, size: 1, index: index, bytes: []byte{0}}
}

// TestAssembliesAreBounded: a client collects parts of so many states, and then takes only further parts of these.
func TestAssembliesAreBounded(t *testing.T) {
	rc := newTestReceiver(1<<10, false)
	for slot := range uint32(MaxAssemblies) {
		require.NoError(t, rc.commitPart(part(slot, 11, 0), 11))
	}
	require.ErrorIs(t, rc.commitPart(part(MaxAssemblies, 11, 0), 11), wire.ErrMissingBaseline, "it must not be acknowledged")
	require.Len(t, rc.Parts, MaxAssemblies)
	require.NoError(t, rc.commitPart(part(3, 12, 0), 12), "a newer state takes the place of one")
	require.Len(t, rc.Parts, MaxAssemblies)
}

// TestPartsOfOneStateMakeIt: a part that comes again does not stand for another one, and nor does one of an older state,
// or of a state of another size, or cut in another way.
func TestPartsOfOneStateMakeIt(t *testing.T) {
	for _, c := range []struct {
		name   string
		then   stagedPart
		missed int
		tick   delta.Tick
	}{
		{"again", *part(5, 20, 0), 1, 20},
		{"of an older state", *part(5, 19, 1), 1, 20},
		{"of a newer state", *part(5, 21, 1), 1, 21},
		{"of a longer state", stagedPart{slot: 5, tick: 20, total: 3, size: 1, index: 1, bytes: []byte{0}}, 2, 20},
		{"cut in another way", stagedPart{slot: 5, tick: 20, total: 2, size: 2, index: 0, bytes: []byte{0, 0}}, 0, 20},
	} {
		rc := newTestReceiver(1<<10, false)
		require.NoError(t, rc.commitPart(part(5, 20, 0), 20))
		_ = rc.commitPart(&c.then, 21)
		if a := rc.Parts[5]; c.missed > 0 {
			require.NotNil(t, a, c.name)
			require.Equal(t, c.missed, a.missed, c.name)
			require.Equal(t, c.tick, a.tick, c.name)
		} else {
			require.Nil(t, a, c.name)
		}
	}
}

// TestStatesInPartsEndWithTheirBits: a state that was sent in parts has no bits after its end.
func TestStatesInPartsEndWithTheirBits(t *testing.T) {
	for _, more := range []int{0, 8} {
		rc := newTestReceiver(1<<10, false)
		w := bitbuf.NewWriter(make([]byte, 100))
		w.WriteExpGolomb(1, wire.GenerationOrder)
		wire.WriteComponentSet(&w, &wire.ComponentSet{}, &wire.ComponentSet{})
		w.WriteBits(0, uint(more))
		state := w.Bytes()
		err := rc.commitPart(&stagedPart{slot: 5, tick: 20, total: len(state), size: len(state), bytes: state}, 20)
		require.Equal(t, more == 0, err == nil, "%d bits more: %v", more, err)
		require.Equal(t, more == 0, rc.Replicas.At(5) != nil)
	}
}

// TestGenerationsHave16Bits: a larger number is none of a few bits more.
func TestGenerationsHave16Bits(t *testing.T) {
	for generation, ok := range map[uint64]bool{0: true, 1<<16 - 1: true, 1 << 16: false, 1<<16 + 1: false, 1 << 40: false} {
		w := bitbuf.NewWriter(make([]byte, 100))
		w.WriteExpGolomb(generation, wire.GenerationOrder)
		wire.WriteComponentSet(&w, &wire.ComponentSet{}, &wire.ComponentSet{})
		p := packedEntries{r: bitbuf.NewReader(w.Bytes())}
		var e entryHead
		p.full(&e)
		require.Equal(t, ok, !p.failed(), "%d", generation)
	}
}

// TestStatesNeedTheirLeastBits: before any memory is taken for a state, the packet has as many bits as it needs at least.
func TestStatesNeedTheirLeastBits(t *testing.T) {
	for least, ok := range map[int]bool{0: true, 16: true, 17: false} {
		p := packedEntries{r: bitbuf.NewReader(make([]byte, 2))}
		p.beginFull(least)
		require.Equal(t, ok, !p.failed(), "%d of 16 bits", least)
	}
}

// TestPacketsEndWithTheirEntries: a packet of Packed has no bits after its entries, and no bits in its padding.
func TestPacketsEndWithTheirEntries(t *testing.T) {
	for _, c := range []struct {
		name   string
		more   int // bits
		pad    int // in the header, beyond the right one
		filled bool
		ok     bool
	}{
		{"right", 0, 0, false, true},
		{"a bit more", 1, 0, false, false},
		{"a byte more", 8, 0, false, false},
		{"a bit less", 0, 1, false, false},
		{"a bit in the padding", 0, 0, true, false},
	} {
		rc := newTestReceiver(1<<10, false)
		w := bitbuf.NewWriter(make([]byte, 100))
		front := wire.Front{Baselines: delta.Baselines{A1: 10}}
		front.Write(&w, 11)
		var lists wire.SlotLists
		lists.Begin(nil, 0)
		lists.AddOther(8, wire.EntryDespawn)
		lists.Write(&w)
		w.WriteBool(false)
		w.WriteBits(0, uint(c.more))
		pad := -w.Len() & 7
		body := w.Bytes()
		if c.filled {
			require.Positive(t, pad, "or choose another slot")
			body[len(body)-1] |= 0x80
		}
		err := rc.DecodeBody(body, pad+c.pad, &wire.StateHeader{Sequence: 1, Tick: 11, Interval: 1})
		require.Equal(t, c.ok, err == nil, "%s: %v", c.name, err)
		require.Equal(t, c.ok, rc.Replicas.At(8) != nil, c.name)
	}
}

// compactDespawns returns the body of a packet of Compact with despawns of n slots from first on.
func compactDespawns(t *testing.T, first, n int) []byte {
	c := compact.NewCoder(emptySchema())
	x := compact.Writer{E: delta.NewRangeEncoder(make([]byte, 1<<16)), State: new(compact.State)}
	x.State.CopyFrom(nil, c.Coder)
	x.State.Tick = 11
	x.Walk.Begin(nil, 11)
	c.Coder.Begin(&x.State.Model)
	x.E.PutExpGolomb(0, compact.ModelRef)
	for slot := range n {
		x.Put(c, first+slot, &compact.Entry{Kind: wire.EntryDespawn})
	}
	x.PutEnd(c.Coder)
	body, err := x.E.Finish()
	require.NoError(t, err)
	return body
}

// TestPacketsOfCompactAreBounded: such a packet has so many entries at most, of slots below the limit.
func TestPacketsOfCompactAreBounded(t *testing.T) {
	for _, c := range []struct {
		first, n int
		limit    uint32
		ok       bool
	}{
		{0, 200, 1 << 20, true}, // more unused slots would be too much work
		{0, compact.MaxCompact + 1, 1 << 20, false},
		{99, 1, 100, true},
		{99, 2, 100, false},
		{100, 1, 100, false},
		{1 << 19, 1, 100, false},
	} {
		rc := newTestReceiver(c.limit, true)
		err := rc.DecodeBody(compactDespawns(t, c.first, c.n), 0, &wire.StateHeader{Sequence: 1, Tick: 11, Interval: 1})
		require.Equal(t, c.ok, err == nil, "%+v: %v", c, err)
		require.Equal(t, c.ok, len(rc.Dirty) == c.n)
	}
}
