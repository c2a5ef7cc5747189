package session

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/arche-replicate/arche-replicate/replication/internal/counters"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// newTestSession returns the session of a client that sends nothing.
func newTestSession() *ClientSession {
	public := PublicErrors{
		Disconnected: func(Farewell) error { return nil },
		Differs:      func(*SchemaDifference) error { return nil },
	}
	o := &config.ClientOptions{EndOptions: config.EndOptions{Seed: 1, Seeded: true, MTU: 1200}}
	s := NewClientSession(o, public, func([]byte) error { return nil }, new(counters.ClientCounters), 7, 100)
	return &s
}

// TestPiecesOfSchemasAreTakenInOrder: a refusal that comes twice, with the same piece of the server's schema, is taken
// once: as the next piece, it would differ.
func TestPiecesOfSchemasAreTakenInOrder(t *testing.T) {
	s := newTestSession()
	own := func() string { return "abcabc\nxyz" }
	refusal := func(offset uint32, piece string) error {
		m := wire.Refuse{Version: wire.ProtocolVersion, Nonce: s.Nonce, Offset: offset, Total: 10}
		_, err := s.ReceiveAnswer(append(m.Append(nil), piece...), own)
		return err
	}
	require.NoError(t, refusal(0, "abca"))
	require.ErrorIs(t, refusal(0, "abca"), wire.ErrStale)
	require.ErrorIs(t, refusal(5, "c\nx"), wire.ErrStale)
	require.False(t, s.Over())
	require.NoError(t, refusal(4, "bc\n"))
	require.False(t, s.Over(), "no difference so far")
	require.NoError(t, refusal(7, "xyw"))
	require.True(t, s.Over())
}

// TestFormerSessionsAreKnown: without checksums, late packets may be of the session before, and of the latest one before that had states,
// though there was one without states in between; not of earlier ones.
func TestFormerSessionsAreKnown(t *testing.T) {
	s := newTestSession()
	packets := map[uint64][]byte{}
	begin := func(id uint64, held bool) {
		s.Begin(&wire.Welcome{Session: id << 8, NoChecksum: true}, held)
		packets[id] = wire.DisconnectPacket(2, "", id<<8, s.Down, 1200)
	}
	begin(1, false)
	begin(2, true) // session 1 had states
	begin(3, true) // so had session 2
	begin(4, false)
	begin(5, false)
	for id, want := range map[uint64]bool{1: false, 2: true, 3: false, 4: true} {
		require.Equal(t, want, s.OfFormer(packets[id]), "session %d", id)
	}
}
