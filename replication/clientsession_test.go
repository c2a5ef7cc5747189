package replication

import (
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/session"
	"github.com/stretchr/testify/require"
)

// TestClientStates: the state machine of the client session, event by event.
func TestClientStates(t *testing.T) {
	const i, c, s, e, x = session.ClientIntroducing, session.ClientConnected, session.ClientSeeking, session.ClientEnded, session.ClientClosed
	for state, next := range [...][6]session.ClientState{
		i: {session.EventWelcomed: c, session.EventReceived: i, session.EventSilence: i, session.EventLeft: i, session.EventEnded: e, session.EventClosed: x},
		c: {session.EventWelcomed: c, session.EventReceived: c, session.EventSilence: s, session.EventLeft: i, session.EventEnded: e, session.EventClosed: x},
		s: {session.EventWelcomed: c, session.EventReceived: c, session.EventSilence: s, session.EventLeft: i, session.EventEnded: e, session.EventClosed: x},
		e: {session.EventWelcomed: e, session.EventReceived: e, session.EventSilence: e, session.EventLeft: i, session.EventEnded: e, session.EventClosed: x},
		x: {session.EventWelcomed: x, session.EventReceived: x, session.EventSilence: x, session.EventLeft: x, session.EventEnded: x, session.EventClosed: x},
	} {
		for event, want := range next {
			require.Equal(t, want, session.ClientState(state).After(session.Event(event)), "state %d, event %d", state, event)
		}
	}
}
