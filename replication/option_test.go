package replication

import (
	"testing"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// TestOptionsOfBothEnds: each shared option has its effect on either end.
func TestOptionsOfBothEnds(t *testing.T) {
	x := newWire(t, messageSchema(), WithMTU(64), WithTimeout(ofTicks(12)), WithSeed(5))
	require.Equal(t, 64, x.server.opts.MTU)
	require.Equal(t, ofTicks(12), x.server.opts.Timeout)
	require.Equal(t, uint64(5), x.server.opts.Seed)
	require.True(t, x.server.opts.Seeded)

	hellos := func(opts ...ClientOption) (first []byte) {
		w := ecs.NewWorld()
		c := NewClientWith(&w, messageSchema(), func(p []byte) error {
			if first == nil {
				first = append(first, p...)
			}
			return nil
		}, opts...)
		require.NoError(t, c.Apply())
		return first
	}
	a := hellos(WithSeed(7))
	b := hellos(WithSeed(7), WithMTU(256), WithTimeout(ofTicks(3)))
	c := hellos(WithSeed(8))
	require.Equal(t, a, b)
	require.NotEqual(t, a, c)

	both := []Option{WithMTU(1000), WithTimeout(0)} // shared options may be listed once
	w := ecs.NewWorld()
	require.NotPanics(t, func() {
		for _, opt := range both {
			NewServer(&w, NewSchema(), opt).Close()
			NewClientWith(&w, NewSchema(), func([]byte) error { return nil }, opt).Close()
		}
	})
}

// TestOptionsFitWhatTheyAreFor: the compiler refuses an option where it has no meaning. This lists
// all that could be misplaced.
func TestOptionsFitWhatTheyAreFor(t *testing.T) {
	for _, opt := range []ComponentOption{Every(2), Priority(2), Once(), OwnerOnly(), ExceptOwner(), OnlyFor(func(*Peer) bool { return true })} {
		_, fits := opt.(MessageOption)
		require.False(t, fits, "an option of components")
	}
	for _, opt := range []MessageOption{Unreliable(), Immediate()} {
		_, fits := opt.(ComponentOption)
		require.False(t, fits, "an option of messages")
	}
	for _, opt := range []any{WithTickRate(60), WithWorkers(2), WithWindow(64), WithoutChecksum(), WithStateHash(1), WithBaselineInterval(2), WithSlotRest(ofTicks(9)), WithMarker[Replicated]()} {
		_, fits := opt.(ClientOption)
		require.False(t, fits, "an option of servers")
	}
	for _, opt := range []any{WithMaxEntities(1), WithoutCompact(), WithSpawnComponents()} {
		_, fits := opt.(ServerOption)
		require.False(t, fits, "an option of clients")
	}
}

type (
	optionWords struct{ Letters []byte } // not a type that can be replicated
	optionTwin  struct{ Size, First uint8 }
	optionNote  struct {
		To    uint16
		Words optionWords
	}
	optionOrder struct{ Words optionWords }
	optionCodec struct{}
)

func optionAs() TypeOption {
	return As(func(from *optionWords, to *optionTwin) {
		if to.Size = uint8(len(from.Letters)); to.Size > 0 {
			to.First = from.Letters[0]
		}
	}, func(from *optionTwin, to *optionWords) {
		to.Letters = make([]byte, from.Size)
		if from.Size > 0 {
			to.Letters[0] = from.First
		}
	})
}

func (optionCodec) Fields() []CodecField {
	return []CodecField{{Name: "Size", Bits: 8, Kind: delta.Plain}}
}

func (optionCodec) Encode(v *optionWords, codes []uint64) {
	codes[0] = uint64(len(v.Letters))
}
func (optionCodec) Decode(codes []uint64, v *optionWords) { v.Letters = make([]byte, codes[0]) }

// TestMessagesAndInputsTakeOptionsOfTypes: Name, Field, As and With do the same for messages and
// inputs as for components.
func TestMessagesAndInputsTakeOptionsOfTypes(t *testing.T) {
	s := NewSchema()
	RegisterMessage[optionNote](s, Name("Note"), Field("To", "range=0:9"), optionAs())
	RegisterInput[optionOrder](s, Name("Order"), With(optionCodec{}))
	require.Contains(t, s.Text(), "Note")
	require.Contains(t, s.Text(), "Order")
	x := connectedWire(t, s)
	var atServer, atClient []optionNote
	OnClientMessage(x.server, func(_ *Peer, m optionNote) { atServer = append(atServer, m) })
	OnServerMessage(x.client, func(m optionNote) { atClient = append(atClient, m) })
	for i, words := range []string{"", "a", "hello"} {
		m := optionNote{uint16(i), optionWords{[]byte(words)}}
		require.NoError(t, SendToServer(x.client, m))
		require.NoError(t, SendToClient(x.peer, m))
		require.NoError(t, SetInput(x.client, x.client.InputTick(), optionOrder{m.Words}))
		tick := x.client.InputTick()
		x.rounds(1)
		for x.server.Tick()+1 < tick {
			x.rounds(1)
		}
		order, ok := Input[optionOrder](x.peer, tick)
		require.True(t, ok)
		require.Len(t, order.Words.Letters, len(words))
	}
	x.rounds(3)
	want := []optionNote{{0, optionWords{[]byte{}}}, {1, optionWords{[]byte("a")}}, {2, optionWords{[]byte("h\x00\x00\x00\x00")}}}
	require.Equal(t, want, atServer)
	require.Equal(t, want, atClient)
}
