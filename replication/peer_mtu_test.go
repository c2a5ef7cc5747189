package replication

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
)

// unlike are peers of one server with paths of their own.
type unlike struct {
	*end
	mtu       int
	noSum     bool
	largest   int
	unsigned  int // packets of a session without checksums
	large     int // those that are as large as no packet of 1,200 bytes
	got, bulk int // messages
}

// connectUnlike connects a peer with an MTU, and a client that counts messages.
func connectUnlike(s *Server, seed uint64, c Coding, mtu int, noSum bool) *unlike {
	w := ecs.NewWorld()
	u := &unlike{mtu: mtu, noSum: noSum}
	u.end = &end{world: &w, last: map[NetID]uint32{}, link: netsim.NewLink(seed, netsim.Config{
		Latency: 3, Jitter: 2, Loss: 0.1, Duplicate: 0.05, MTU: mtu,
	})}
	opts := []PeerOption{WithCoding(c), WithMTU(mtu)}
	if noSum {
		opts = append(opts, WithoutChecksum())
	}
	u.peer = s.Connect(func(p []byte) error {
		u.largest = max(u.largest, len(p))
		if len(p) > 1200 {
			u.large++
		}
		return u.link.Down.Send(p)
	}, opts...)
	u.client = NewClientWith(&w, faceOf(s.schema), u.link.Up.Send, WithSeed(seed))
	OnServerMessage(u.client, func(mHit) { u.got++ })
	OnServerMessage(u.client, func(mBulk) { u.bulk++ })
	return u
}

// TestEachPeerHasItsMTUAndChecksum: one server, and transports of all kinds.
func TestEachPeerHasItsMTUAndChecksum(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2) {
		for _, budget := range []int{0, 40_000} {
			t.Run(fmt.Sprint("seed ", seed, ", budget ", budget), func(t *testing.T) {
				w := ecs.NewWorld()
				schema := testSchema()
				RegisterMessage[mHit](schema, Unreliable())
				RegisterMessage[mBulk](schema)
				s := NewServer(&w, schema, WithSeed(seed), WithTuning(Tuning{StateHash: 20, Workers: 1 + int(seed)*3}))
				g := newGame(seed, &w, schema, 150)
				o := newTruth()
				group := s.NewGroup()
				var all []*unlike
				var ends []*end
				for i, mtu := range []int{64, 300, 1200, 1200, 1203, 4000, 16_384} {
					for _, noSum := range []bool{false, true} {
						u := connectUnlike(s, seed*100+uint64(2*i), Coding(i%2), mtu, noSum)
						if budget > 0 {
							u.peer.SetBudget(budget)
						}
						all, ends = append(all, u), append(ends, u.end)
					}
				}
				for tick := range 400 {
					g.step()
					for _, e := range g.entities[:min(4, len(g.entities))] {
						if tick%40 == 0 {
							group.Add(e)
						}
					}
					if tick > 60 && tick%10 == 0 {
						require.NoError(t, SendToAll(s, mHit{}))
						require.NoError(t, SendToAll(s, bulk(20*(tick%100)+9)))
					}
					tickAll(t, s, o, ends)
				}
				if budget > 0 {
					for _, u := range all {
						u.peer.SetBudget(0)
					}
				}
				for n := 0; ; n++ {
					if n == 900 {
						for _, u := range all {
							t.Log(u.mtu, u.noSum, u.bulk, u.got, u.equalTo(s, o), u.largest)
						}
					}
					require.Less(t, n, 900, "they converge")
					tickAll(t, s, o, ends)
					differs := ""
					for _, u := range all {
						if d := u.equalTo(s, o); d != "" {
							differs = fmt.Sprintf("MTU %d: %s", u.mtu, d)
						}
					}
					if differs == "" && !slices.ContainsFunc(all, func(u *unlike) bool { return u.bulk < 33 }) {
						break
					}
				}
				for _, u := range all {
					require.LessOrEqual(t, u.largest, u.mtu)
					require.Equal(t, 33, u.bulk, "reliable messages to a peer with an MTU of %d", u.mtu)
					require.Greater(t, u.got, 20, "unreliable ones")
					require.Equal(t, u.noSum, u.peer.conn.Session.Down.Off)
					require.Equal(t, u.noSum, u.client.session.Down.Off)
					require.Zero(t, u.client.Stats().RefusedPackets)
					require.Nil(t, u.client.Divergence())
					if u.mtu > 1300 && budget == 0 && seed == 0 {
						require.Positive(t, u.large, "it has large packets")
					}
				}
			})
		}
	}
}

// TestPeersWithLessRoomTakeNoSharedPackets: neither when they join nor later, be it a byte that they lack.
func TestPeersWithLessRoomTakeNoSharedPackets(t *testing.T) {
	oneGoroutine(t)
	w := ecs.NewWorld()
	schema := testSchema()
	RegisterMessage[mHit](schema)
	RegisterMessage[mBulk](schema)
	s := NewServer(&w, schema, WithSeed(1))
	g := newGame(1, &w, schema, 400)
	for len(g.entities) < 400 {
		g.spawn(g.ids...)
	}
	step := func(ends []*end, o *truth) {
		for _, e := range g.entities {
			g.mutate(e)
		}
		tickAll(t, s, o, ends)
	}
	var all []*unlike
	var ends []*end
	o := newTruth()
	for range 5 {
		step(nil, o)
	}
	for i, mtu := range []int{1200, 1200, 1200, 1199, 1199, 300, 300, 1195, 1400, 310} {
		u := connectUnlike(s, uint64(i), map[int]Coding{310: Compact}[mtu], mtu, mtu == 1195)
		u.link.SetConfig(netsim.Config{Latency: 1})
		all, ends = append(all, u), append(ends, u.end)
	}
	for range 80 {
		step(ends, o)
	}
	tickAll(t, s, o, ends)
	tickAll(t, s, o, ends)
	tickAll(t, s, o, ends)
	require.Greater(t, s.Stats().SharedPackets, uint64(1000))
	for _, u := range all {
		require.LessOrEqual(t, u.largest, u.mtu)
		require.Greater(t, u.largest, u.mtu*4/5)
		require.Empty(t, u.equalTo(s, o), u.mtu)
	}
}

// TestPeersWithoutChecksumSaveBytes: of two peers that are sent the same. A longer sequence takes one of four back.
func TestPeersWithoutChecksumSaveBytes(t *testing.T) {
	w := ecs.NewWorld()
	schema := testSchema()
	s := NewServer(&w, schema, WithSeed(1))
	g := newGame(1, &w, schema, 100)
	sizes := make([][]int, 2)
	var ends []*end
	for i := range sizes {
		w := ecs.NewWorld()
		e := &end{world: &w, last: map[NetID]uint32{}, link: netsim.NewLink(1, netsim.Config{Latency: 1})}
		opts := [][]PeerOption{nil, {WithoutChecksum()}}[i]
		e.peer = s.Connect(func(p []byte) error { sizes[i] = append(sizes[i], len(p)); return e.link.Down.Send(p) }, opts...)
		e.client = NewClientWith(&w, schema, e.link.Up.Send, WithSeed(uint64(i)+1))
		ends = append(ends, e)
	}
	same := 0
	for range 200 {
		for range 3 {
			if len(g.entities) < 40 {
				g.spawn(g.ids[0])
			}
		}
		for _, e := range g.entities {
			g.mutate(e)
		}
		sizes[0], sizes[1] = sizes[0][:0], sizes[1][:0]
		s.Replicate()
		for _, e := range ends {
			e.step(t)
		}
		if len(sizes[0]) == 1 && len(sizes[1]) == 1 && sizes[0][0] == sizes[1][0]+wire.ChecksumSize-1 {
			same++
		}
	}
	require.Greater(t, same, 150, "of 200 ticks")
}

// TestMessagesTooLargeForOnePeer: the others get them.
func TestMessagesTooLargeForOnePeer(t *testing.T) {
	w := ecs.NewWorld()
	schema := NewSchema()
	RegisterMessage[mBulk](schema, Unreliable())
	s := NewServer(&w, schema)
	require.ErrorIs(t, SendToAll(s, bulk(5000)), ErrMessageTooLarge, "nobody is there: by the server's MTU")
	small := connectUnlike2(s, 300)
	large := connectUnlike2(s, 16_384)
	for range 20 {
		s.Replicate()
		small.step(t)
		large.step(t)
	}
	got := 0
	OnServerMessage(small.client, func(mBulk) { require.Fail(t, "it is too large") })
	OnServerMessage(large.client, func(mBulk) { got++ })
	require.ErrorIs(t, SendToAll(s, bulk(5000)), ErrMessageTooLarge)
	require.ErrorIs(t, SendToClient(small.peer, bulk(500)), ErrMessageTooLarge)
	require.ErrorContains(t, SendToClient(small.peer, bulk(500)), "fit into a packet of 300")
	require.NoError(t, SendToClient(large.peer, bulk(5000)))
	for range 20 {
		s.Replicate()
		small.step(t)
		large.step(t)
	}
	require.Equal(t, 2, got)
	require.EqualValues(t, 1, small.peer.Stats().MessagesDropped)

	// Of two errors, the one that waiting does not mend.
	var full error
	for _, size := range []int{5000, 100} {
		for full = nil; full == nil; {
			full = SendToClient(large.peer, bulk(size))
		}
	}
	require.ErrorIs(t, full, ErrBufferFull)
	require.ErrorIs(t, SendToAll(s, bulk(5000)), ErrMessageTooLarge)
	require.ErrorIs(t, SendToAll(s, bulk(100)), ErrBufferFull)
}

func connectUnlike2(s *Server, mtu int) *end {
	w := ecs.NewWorld()
	e := &end{world: &w, link: netsim.NewLink(1, netsim.Config{MTU: mtu}), last: map[NetID]uint32{}}
	e.peer = s.Connect(e.link.Down.Send, WithMTU(mtu))
	e.client = NewClientWith(&w, faceOf(s.schema), e.link.Up.Send)
	return e
}

// TestRefusalsHaveThePeersMTU: for a schema that differs, a client that may not join, and a peer that is disconnected.
func TestRefusalsHaveThePeersMTU(t *testing.T) {
	long := strings.Repeat("long ", 20)
	for _, mtu := range []int{64, 100} {
		for _, refuse := range []string{"schema", "join", "disconnect"} {
			x := newWire(t, testSchema())
			own := testSchema()
			if refuse == "schema" {
				RegisterMessage[mHit](own)
			}
			x.server.OnJoin(func(*Peer, []byte) error {
				if refuse == "join" {
					return errors.New(long)
				}
				return nil
			})
			var client *Client
			largest := 0
			peer := x.server.Connect(func(p []byte) error {
				largest = max(largest, len(p))
				return client.Receive(p)
			}, WithMTU(mtu), WithoutChecksum())
			w := ecs.NewWorld()
			client = NewClientWith(&w, own, peer.Receive, WithJoinData(make([]byte, 300)))
			for range 600 {
				_ = client.Frame(time.Second / 60)
			}
			if refuse == "disconnect" {
				require.True(t, peer.Connected())
				peer.Disconnect(Reason{Text: long})
			}
			require.Greater(t, largest, 32)
			require.LessOrEqual(t, largest, mtu)
			var differs *SchemaError
			var ended *DisconnectError
			if err := client.Frame(time.Second / 60); refuse == "schema" {
				require.ErrorAs(t, err, &differs)
			} else {
				require.ErrorAs(t, err, &ended)
				require.True(t, strings.HasPrefix(long, ended.Reason.Text[:8]), ended.Reason.Text)
			}
		}
	}
}
