package replication

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// schemaOfText returns a schema with a text of about so many bytes, at least a few thousand.
func schemaOfText(bytes int) *Schema {
	s := testSchema()
	for i := 0; bytes > 0; i++ {
		n := min(300, bytes/300+1)
		RegisterType(s, reflect.ArrayOf(n+i%2, reflect.StructOf([]reflect.StructField{
			{Name: "AnUncommonlyLongFieldName", Type: reflect.TypeFor[float64](), Tag: `repl:"range=-123456.25:123456.25,step=0.015625"`},
			{Name: fmt.Sprint("Second", i), Type: reflect.TypeFor[tManyFields]()},
		})), Name(fmt.Sprint("Component", i)))
		bytes -= n * 300
	}
	return s
}

// strangers returns a server and a function that gives it a hello; answers are counted and dropped.
func strangers(t testing.TB, schema *Schema) (x *fixture, sendHello func(h wire.Hello)) {
	world := ecs.NewWorld()
	x = &fixture{t: t, world: &world}
	x.server = NewServer(x.world, schema, WithSeed(1))
	buf := make([]byte, 0, 1200)
	x.peer = x.server.Connect(func(p []byte) error {
		x.down = append(x.down[:0], append(buf, p...))
		return nil
	})
	type hello struct { // what differs
		version            uint8
		fingerprint, nonce uint64
		offset             uint32
	}
	packets := map[hello][]byte{}
	return x, func(h wire.Hello) {
		key := hello{h.Version, h.Fingerprint, h.Nonce, h.Offset}
		packet := packets[key]
		if packet == nil {
			packet = wire.WithChecksum(h.Append(nil))
			packets[key] = packet
		}
		if err := x.peer.Receive(packet); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRefusalsAreReported with a sentence about the reason.
func TestRefusalsAreReported(t *testing.T) {
	x := newWire(t, messageSchema())
	var reasons []string
	x.server.OnRefuse(func(p *Peer, reason error) {
		require.Same(t, x.peer, p)
		reasons = append(reasons, reason.Error())
	})
	x.server.OnJoin(func(_ *Peer, data []byte) error {
		if string(data) == "bob" {
			return errors.New("Bob is banned")
		}
		return nil
	})
	for i, c := range []struct {
		schema *Schema
		data   string
		reason string
	}{
		{testSchema(), "ann", "the schema of a client differs from this server's in one of the lines"},
		{messageSchema(), "bob", "Bob is banned"},
		{messageSchema(), "ann", ""},
	} {
		reasons = nil
		x.restart(c.schema, uint64(7+i), WithJoinData([]byte(c.data)))
		for range 50 {
			x.deliver(x.replicate()...)
			_ = x.client.Apply()
			x.answer(x.up...)
			x.up = nil
		}
		require.Equal(t, c.reason == "", x.client.Status() == StatusConnected, c.data)
		if c.reason == "" {
			require.Empty(t, reasons)
			continue
		}
		require.NotEmpty(t, reasons) // the client asks for the text in pieces
		require.LessOrEqual(t, len(reasons), 4)
		require.Contains(t, reasons[len(reasons)-1], c.reason)
	}
	require.PanicsWithValue(t, "replication: OnRefuse needs a function", func() { x.server.OnRefuse(nil) })
}

// TestRefusalsOfAPeerAreBounded: a stranger may ask for any part of the schema's text.
func TestRefusalsOfAPeerAreBounded(t *testing.T) {
	x, sendHello := strangers(t, schemaOfText(20_000))
	n := 0
	sendHello(wire.Hello{Version: wire.ProtocolVersion, Fingerprint: 1, Nonce: 7, Offset: 1000})
	x.server.OnRefuse(func(*Peer, error) { n++ })
	_ = x.peer.Receive(nil)
	require.Zero(t, n, "what was refused before is over")
	for i := range uint32(100) {
		sendHello(wire.Hello{Version: wire.ProtocolVersion, Fingerprint: 1, Nonce: 7, Offset: i})
	}
	require.Equal(t, 15, n)
}

// TestAnswersToHellosAllocateNothing: whichever part of the schema's text a stranger asks for, and
// whether or not the hello matches.
func TestAnswersToHellosAllocateNothing(t *testing.T) {
	skipAllocationTest(t)
	x, sendHello := strangers(t, schemaOfText(20_000))
	text := x.server.schema.FullText()
	require.Greater(t, len(text), 15_000)
	for _, offset := range []uint32{0, 1, 169, 170, 171, 10_000, uint32(len(text)) - 170, uint32(len(text)) - 1, uint32(len(text)), uint32(len(text)) + 1, 1 << 31, math.MaxUint32} {
		h := wire.Hello{Version: wire.ProtocolVersion, Fingerprint: 1, Nonce: 7, Offset: offset}
		require.Zero(t, testing.AllocsPerRun(100, func() { sendHello(h) }), "offset %d", offset)
		var m wire.Refuse
		require.True(t, m.Parse(wire.OpenHandshake(x.down[0])))
		from := min(int64(offset), int64(len(text)))
		require.Equal(t, text[from:min(from+170, int64(len(text)))], string(m.Text))
		require.Equal(t, wire.Refuse{Version: wire.ProtocolVersion, Nonce: 7, Offset: offset, Total: uint32(len(text)), Text: m.Text}, m)
		require.LessOrEqual(t, len(x.down[0]), wire.MaxAmplification*wire.MinMTU)
	}
	h := wire.Hello{Version: wire.ProtocolVersion + 1}
	require.Zero(t, testing.AllocsPerRun(100, func() { sendHello(h) }), "another version")
	h = wire.Hello{Version: wire.ProtocolVersion, Fingerprint: x.server.sessions.Fingerprint, Nonce: 7}
	require.Zero(t, testing.AllocsPerRun(100, func() { sendHello(h) }), "one that matches")
	require.NotNil(t, wire.OpenHandshake(x.down[0]))
}

// TestAFrozenSchemaHoldsItsTextOnce: the buffers that it was built with are freed.
func TestAFrozenSchemaHoldsItsTextOnce(t *testing.T) {
	s := schemaOfText(5_000)
	RegisterMessage[mHit](s)
	RegisterInput[mMove](s)
	before, fingerprint := s.Text(), s.Fingerprint()
	s.raw.Freeze()
	require.Equal(t, before, s.Text())
	require.Equal(t, fingerprint, s.Fingerprint())
	require.True(t, strings.HasSuffix(before, "mMove.Stamp uint16\n"))
	require.Zero(t, testing.AllocsPerRun(10, func() { _ = s.Text() }))
	require.Nil(t, s.raw.Components[0].Lines)
	require.Nil(t, s.raw.Messages[0].Lines)
	require.Nil(t, s.raw.Input.Lines)
}

// BenchmarkHello measures a server's answer to a client with its schema, and to one with another,
// for a small schema and a huge one.
func BenchmarkHello(b *testing.B) {
	for _, size := range []int{23_000, 482_000} {
		x, sendHello := strangers(b, schemaOfText(size))
		own := x.server.sessions.Fingerprint
		for name, h := range map[string]wire.Hello{
			"matches":   {Version: wire.ProtocolVersion, Fingerprint: own, Nonce: 7},
			"refused":   {Version: wire.ProtocolVersion, Fingerprint: own + 1, Nonce: 7},
			"at-an-end": {Version: wire.ProtocolVersion, Fingerprint: own + 1, Nonce: 7, Offset: math.MaxUint32},
		} {
			b.Run(fmt.Sprintf("text=%dkB/%s", len(x.server.schema.FullText())/1000, name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					sendHello(h)
				}
			})
		}
	}
}
