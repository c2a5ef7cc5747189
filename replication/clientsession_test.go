package replication

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestClientStates: which state follows on which event.
func TestClientStates(t *testing.T) {
	const i, c, s, e, x = clientIntroducing, clientConnected, clientSeeking, clientEnded, clientClosed
	for state, next := range [...][6]clientState{
		i: {eventWelcomed: c, eventHeard: i, eventSilence: i, eventLeft: i, eventEnded: e, eventClosed: x},
		c: {eventWelcomed: c, eventHeard: c, eventSilence: s, eventLeft: i, eventEnded: e, eventClosed: x},
		s: {eventWelcomed: c, eventHeard: c, eventSilence: s, eventLeft: i, eventEnded: e, eventClosed: x},
		e: {eventWelcomed: e, eventHeard: e, eventSilence: e, eventLeft: i, eventEnded: e, eventClosed: x},
		x: {eventWelcomed: x, eventHeard: x, eventSilence: x, eventLeft: x, eventEnded: x, eventClosed: x},
	} {
		for event, want := range next {
			require.Equal(t, want, clientState(state).after(sessionEvent(event)), "state %d, event %d", state, event)
		}
	}
}
