package replication

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/replication/internal/message"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/stretchr/testify/require"
)

// A piece is a message of letterSchema as a forger writes it.
type piece struct {
	number   int
	ahead    uint32 // added to the id before it
	fragment wire.Fragment
	size     int // as written; 0: the size of data, -1: none
	data     []byte
	bits     int // of data, if not a multiple of 8
}

const (
	numberHit    = 0
	numberLetter = 2
	numberBulk   = 5
)

// forgePieces returns a packet with a correct checksum, the n-th forged one.
func (x *fixture) forgePieces(down bool, n int32, first uint32, pieces ...piece) []byte {
	w := bitbuf.NewWriter(make([]byte, 60_000))
	w.WriteExpGolomb(0, 0)
	w.WriteBits(0, 2) // no acks; or no report and no ack
	for i, p := range pieces {
		w.WriteBits(1|uint64(p.number)<<1, 4)
		if i == 0 {
			w.WriteBits(uint64(first), 16)
		} else {
			w.WriteExpGolomb(uint64(p.ahead), 0)
		}
		if x.server.schema.Messages[p.number].Long {
			p.fragment.Write(&w)
		}
		if down && p.fragment != wire.MoreFragments {
			w.WriteExpGolomb(0, message.AgeOrder)
			w.WriteBool(false)
		}
		if p.fragment != wire.Unfragmented {
			size := max(p.size, 0)
			if p.size == 0 {
				size = len(p.data)
			}
			w.WriteBits(uint64(size), message.FragmentSizeBits)
		}
		if p.bits == 0 {
			p.bits = 8 * len(p.data)
		}
		w.WriteRun(p.data, p.bits)
	}
	w.WriteBool(false)
	return x.forgeMessages(wire.KindMessages, down, n, bytes.Clone(w.Bytes()))
}

// receive gives a packet to one of the ends.
func (x *fixture) receive(down bool, packet []byte) error {
	if down {
		return x.client.Receive(packet)
	}
	return x.peer.Receive(packet)
}

// letterWire is a session in which letters arrive only in forged packets.
func letterWire(t testing.TB, got *[]string) *fixture {
	x := connectedWire(t, letterSchema())
	OnServerMessage(x.client, func(mHit) { *got = append(*got, "hit") })
	OnClientMessage(x.server, func(_ *Peer, _ mHit) { *got = append(*got, "hit") })
	OnServerMessage(x.client, func(m mBulk) { *got = append(*got, m.Parts[0]) })
	OnClientMessage(x.server, func(_ *Peer, m mBulk) { *got = append(*got, m.Parts[0]) })
	OnServerMessage(x.client, func(m mLetter) { *got = append(*got, text(m.Pages)) })
	OnClientMessage(x.server, func(_ *Peer, m mLetter) { *got = append(*got, text(m.Pages)) })
	return x
}

// TestHostileFragmentsAreRefused: packets that no honest sender could have written are refused.
func TestHostileFragmentsAreRefused(t *testing.T) {
	for _, down := range []bool{false, true} {
		for _, c := range []struct {
			name string
			p    piece
		}{
			{"empty", piece{number: numberBulk, fragment: wire.MoreFragments, size: -1}},
			{"an empty last one", piece{number: numberBulk, fragment: wire.LastFragment, size: -1}},
			{"longer than the packet", piece{number: numberBulk, fragment: wire.MoreFragments, size: 101, data: make([]byte, 100)}},
			{"the greatest size that can be written", piece{number: numberBulk, fragment: wire.LastFragment, size: 65535, data: make([]byte, 100)}},
			{"larger than its type", piece{number: numberLetter, fragment: wire.LastFragment, data: make([]byte, 13_000)}},
		} {
			var got []string
			x := letterWire(t, &got)
			require.ErrorIs(t, x.receive(down, x.forgePieces(down, 1, 0, c.p)), wire.ErrMalformed, c.name)
			require.Zero(t, x.client.messages.In[wire.ChannelState].Size+x.peer.messages.In[wire.ChannelState].Size)
			x.goesOn()
			require.Empty(t, got)
		}
	}
}

// TestFragmentsThatMakeNoMessage: such fragments are counted and dropped, and later messages
// arrive.
func TestFragmentsThatMakeNoMessage(t *testing.T) {
	row := func(size int) []byte { // of a mBulk
		s := letterSchema()
		s.raw.Freeze()
		var m message.Messenger
		m.Init(&s.raw, nil, false, 0)
		d, err := message.Write(&m, bulk(size))
		require.NoError(t, err)
		data, _ := m.Encode(&m.Pending[d])
		return bytes.Clone(data)
	}
	good := row(3000)
	more := func(data []byte) piece { return piece{number: numberBulk, fragment: wire.MoreFragments, data: data} }
	last := func(data []byte) piece { return piece{number: numberBulk, fragment: wire.LastFragment, data: data} }
	hit := piece{number: numberHit, fragment: wire.Unfragmented, data: make([]byte, 6), bits: 32 + 10}
	endless := make([]piece, 200)
	for i := range endless {
		endless[i] = more([]byte{1})
	}
	padded := bytes.Clone(good)
	padded[len(padded)-1] |= 0x80
	for _, c := range []struct {
		name      string
		pieces    []piece
		malformed uint64
		got       []string
	}{
		{"honest", []piece{more(good[:1000]), more(good[1000:2000]), last(good[2000:])}, 0, []string{bulk(3000).Parts[0]}},
		{"of one", []piece{last(good)}, 0, []string{bulk(3000).Parts[0]}},
		{"endless", endless, 1, nil},
		{"more than the type has", []piece{more(make([]byte, 15_000)), last(make([]byte, 15_000))}, 1, nil},
		{"more than the type has, and still more", []piece{more(make([]byte, 15_000)), more(make([]byte, 15_000)), more([]byte{1})}, 2, nil},
		{"cut short", []piece{more(good[:1000]), last(good[1000:2999])}, 1, nil},
		{"a byte too many", []piece{more(good), last([]byte{0})}, 1, nil},
		{"padding", []piece{more(good[:1000]), last(padded[1000:])}, 1, nil},
		{"nonsense", []piece{more(bytes.Repeat([]byte{0xff}, 100)), last([]byte{0xff})}, 1, nil},
		{"without end", []piece{more(good[:1000])}, 1, nil},
		{"another type between", []piece{more(good[:1000]), {number: numberLetter, fragment: wire.MoreFragments, data: []byte{1}}, last(good[1000:])}, 3, nil},
		{"an unfragmented one between", []piece{more(good[:1000]), hit, last(good[1000:])}, 2, []string{"hit"}},
		{"an unfragmented one of the same type between", []piece{more(good[:1000]), {number: numberBulk, data: make([]byte, 8), bits: 60}, last(good)}, 1, []string{"", bulk(3000).Parts[0]}},
	} {
		for _, down := range []bool{false, true} {
			var got []string
			x := letterWire(t, &got)
			pieces := append(slices.Clone(c.pieces), hit)
			if down || len(pieces) < 100 {
				require.NoError(t, x.receive(down, x.forgePieces(down, 1, 0, pieces...)))
			} else { // one by one, the last one first
				for i := len(pieces) - 1; i >= 0; i-- {
					require.NoError(t, x.receive(down, x.forgePieces(down, int32(len(pieces)-i), uint32(i), pieces[i])))
				}
			}
			require.NoError(t, x.client.Apply())
			require.Equal(t, append(c.got[:len(c.got):len(c.got)], "hit"), got, c.name)
			malformed := x.peer.Stats().MessagesMalformed
			in := &x.peer.messages.In[wire.ChannelState]
			if down {
				malformed = x.client.Stats().MessagesMalformed
				in = &x.client.messages.In[wire.ChannelState]
			}
			if c.name == "endless" { // one of 128, and the rest when something else arrives
				c.malformed = 2
			}
			require.Equal(t, c.malformed, malformed, c.name)
			require.EqualValues(t, len(pieces), in.Next, c.name)
			require.Zero(t, in.Size, c.name)
			x.goesOn()
		}
	}
}

// TestHostileFragmentsTakeLittleMemory: fragments that never complete a message count against the
// limits of their channel.
func TestHostileFragmentsTakeLittleMemory(t *testing.T) {
	var got []string
	x := letterWire(t, &got)
	rng := rand.New(rand.NewPCG(1, 1))
	for _, down := range []bool{false, true} {
		in := &x.peer.messages.In[wire.ChannelState]
		if down {
			in = &x.client.messages.In[wire.ChannelState]
		}
		for i := range int32(5000) {
			id := in.Next + 1 + uint32(rng.IntN(wire.MaxQueued-1))
			_ = x.receive(down, x.forgePieces(down, 1+i, id, piece{number: numberBulk, fragment: wire.MoreFragments, data: make([]byte, 1+rng.IntN(1100))}))
			if i%100 == 0 {
				x.server.Replicate()
				require.NoError(t, x.client.Apply())
			}
			require.LessOrEqual(t, in.Size, message.MaxQueuedBytes)
			require.LessOrEqual(t, in.Places(), wire.MaxQueued)
		}
		require.Greater(t, in.Size, message.MaxQueuedBytes*9/10)
	}
	require.Empty(t, got)
}
