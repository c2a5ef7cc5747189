package transport_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
)

// What a person reads who starts a game wrongly: a sentence with what to do. Those of certificates and origins are
// tested with their transports.
func TestMistakes(t *testing.T) {
	onEach(t, func(t *testing.T, c carrier) {
		other := schema()
		replication.Register[struct{ Z int8 }](other, replication.Name("extra"))
		server := func() *replication.Server {
			world := ecs.NewWorld()
			return replication.NewServer(&world, schema())
		}
		// frames returns what the client reports in the end, of Frame or, if it goes on, of Err.
		frames := func(address string, s *replication.Schema, l *listener, server *replication.Server) (ends bool, sentence string) {
			world := ecs.NewWorld()
			client := replication.NewClient(&world, s, replication.WithJoinData([]byte("token")))
			end := c.dial(t, address, client, nil)
			defer func() { require.NoError(t, end.Close()) }()
			for limit := time.Now().Add(20 * time.Second); time.Now().Before(limit); time.Sleep(5 * time.Millisecond) {
				if l != nil {
					l.poll()
					server.Replicate()
				}
				end.Poll()
				if err := client.Frame(tickTime); err != nil {
					return true, err.Error()
				}
				if err := client.Err(); err != nil && !strings.Contains(err.Error(), " yet") {
					return false, err.Error()
				}
			}
			t.Fatal("nothing was reported in 20 seconds")
			return false, ""
		}
		expect := func(ends bool, sentence string) func(wantEnds bool, words ...string) {
			return func(wantEnds bool, words ...string) {
				t.Helper()
				t.Log(sentence)
				require.Equal(t, wantEnds, ends, sentence)
				require.NotContains(t, sentence, "\n")
				for _, w := range words {
					require.Contains(t, sentence, w)
				}
			}
		}

		s := server()
		l := c.listen(t, anyPort, s, nil)
		expect(frames(l.address, other, l, s))(true, "the schemas differ, register the same types", `client has "component extra"`)
		require.Contains(t, s.Stats().LastRefusal, "register the same types")

		s.OnJoin(func(_ *replication.Peer, data []byte) error {
			if string(data) == "token" {
				return errors.New("this token has expired: log in again")
			}
			return nil
		})
		expect(frames(l.address, schema(), l, s))(true, "this token has expired: log in again")

		if c.taken != nil {
			err := c.taken(l.address, server())
			t.Log(err)
			require.ErrorContains(t, err, fmt.Sprintf("at %q: is the server running already? End it, or choose another port", l.address))
		}
		require.NoError(t, l.close())
		if c.name != "webtransport" { // its client is of this test
			expect(frames(l.address, schema(), nil, nil))(false, "the client can't reach the server", l.address, "running")
		}
	})
}
