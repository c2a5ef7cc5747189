package session

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestClientStates: the state machine of the client session, event by event.
func TestClientStates(t *testing.T) {
	const (
		i, c, p = clientIntroducing, clientConnected, clientProbing
		s, e, x = ClientSeeking, clientEnded, clientClosed
	)
	for state, next := range [...][7]ClientState{
		i: {eventWelcomed: c, eventReceived: i, eventQuiet: i, eventSilence: i, eventLeft: i, eventEnded: e, eventClosed: x},
		c: {eventWelcomed: c, eventReceived: c, eventQuiet: p, eventSilence: s, eventLeft: i, eventEnded: e, eventClosed: x},
		p: {eventWelcomed: c, eventReceived: c, eventQuiet: p, eventSilence: s, eventLeft: i, eventEnded: e, eventClosed: x},
		s: {eventWelcomed: c, eventReceived: c, eventQuiet: s, eventSilence: s, eventLeft: i, eventEnded: e, eventClosed: x},
		e: {eventWelcomed: e, eventReceived: e, eventQuiet: e, eventSilence: e, eventLeft: i, eventEnded: e, eventClosed: x},
		x: {eventWelcomed: x, eventReceived: x, eventQuiet: x, eventSilence: x, eventLeft: x, eventEnded: x, eventClosed: x},
	} {
		for number, want := range next {
			require.Equal(t, want, ClientState(state).after(event(number)), "state %d, event %d", state, number)
		}
	}
}
