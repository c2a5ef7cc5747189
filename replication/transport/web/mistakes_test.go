//go:build !js

package web

import (
	"context"
	"crypto/tls"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
)

func TestForeignOrigins(t *testing.T) {
	evil := http.Header{"Origin": {"https://evil.example"}}
	h := serve(t, WithOrigins("https://game.example"))
	require.NoError(t, h.handler.WebTransport("127.0.0.1:0", nil))
	request := func(origin, query string) (int, string, http.Header) {
		r, err := http.NewRequest(http.MethodGet, h.url()+query, nil)
		require.NoError(t, err)
		r.Header.Set("Origin", origin)
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		defer func() { _ = answer.Body.Close() }()
		text, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		return answer.StatusCode, string(text), answer.Header
	}
	status, text, header := request("https://evil.example", "?info")
	require.Equal(t, 403, status)
	require.Contains(t, text, `pages of "https://evil.example" may not connect`)
	require.Contains(t, text, `web.WithOrigins("https://evil.example")`)
	require.Equal(t, "https://evil.example", header.Get("Access-Control-Allow-Origin"), "its page may read why")
	for _, origin := range []string{"https://game.example", "HTTPS://GAME.EXAMPLE", h.http.URL} {
		status, text, _ = request(origin, "?info")
		require.Equal(t, 200, status, text)
		require.Contains(t, text, `"hash":`)
	}
	for _, origin := range []string{"null", "https://game.example.evil.example", "https://game.example:8080", "http://game.example", "%"} {
		status, _, _ = request(origin, "?info")
		require.Equal(t, 403, status, origin)
	}
	_, answer, err := websocket.Dial(t.Context(), h.url(), &websocket.DialOptions{HTTPHeader: evil})
	require.Error(t, err)
	require.Equal(t, 403, answer.StatusCode)
	require.EqualValues(t, 7, h.handler.Stats().ForeignOrigins)
	require.Zero(t, h.handler.Stats().Opened)

	p := dialTransport(t, h, "https://evil.example")
	until(t, h, func() bool { return p.err != nil }, p)
	require.ErrorContains(t, p.err, "refuses this client")
	p = dialTransport(t, h, "https://game.example")
	until(t, h, p.advances(10), p)
	all := NewHandler(h.server, WithOrigins("*"))
	require.True(t, all.allows("https://evil.example", "game.example"))
	require.NoError(t, all.Close())
}

// Sentences for persons who start it wrongly.
func TestMistakes(t *testing.T) {
	h := serve(t)
	fails := func(url string) string {
		p := dial(t, url)
		until(t, h, func() bool { return p.err != nil }, p)
		return p.err.Error()
	}
	waits := func(url, sentence string) {
		p := dial(t, url)
		until(t, h, func() bool { return p.client.Err() != nil && strings.Contains(p.client.Err().Error(), sentence) }, p)
		require.NoError(t, p.err)
	}
	require.Contains(t, fails(h.http.URL+"/plya"), "is web.NewHandler's handler mounted under this path?")
	require.Contains(t, fails(strings.Replace(h.url(), "http", "https", 1)), "speaks no TLS")
	secure := httptest.NewUnstartedServer(h.handler)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	require.Contains(t, fails(secure.URL), "is not trusted")
	require.Contains(t, fails(strings.Replace(secure.URL, "https", "ws", 1)), "HTTPS")
	forbidden := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "not you", http.StatusForbidden)
	}))
	defer forbidden.Close()
	require.Contains(t, fails(forbidden.URL), "refuses this client: not you")
	page := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer page.Close()
	require.Contains(t, fails(page.URL), "there is no game")
	gone := httptest.NewServer(nil)
	gone.Close()
	waits(gone.URL, "is it running?")
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "out of order", http.StatusBadGateway)
	}))
	defer broken.Close()
	waits(broken.URL, "502: out of order")
	for _, url := range []string{"", "/play", "game.example", "ftp://game.example", "http://", "http://%"} {
		_, err := Dial(url, newPlayer().client)
		require.Error(t, err, url)
		require.NotContains(t, err.Error(), "\n")
	}
	require.ErrorContains(t, h.handler.WebTransport("127.0.0.1:0", &tls.Config{}), "no certificate")
	require.NoError(t, h.handler.WebTransport("127.0.0.1:0", nil))
	other := NewHandler(h.server)
	require.ErrorContains(t, other.WebTransport(h.handler.quic.socket.LocalAddr().String(), nil), "in use")
	require.NoError(t, other.Close())
	require.ErrorContains(t, other.WebTransport("127.0.0.1:0", nil), "closed")

	answer, err := http.Get(h.url())
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Equal(t, 426, answer.StatusCode)
	require.Contains(t, string(text), "/play?js")
}

// TestBadMessages: what is no packet ends one connection.
func TestBadMessages(t *testing.T) {
	h := serve(t)
	q := dial(t, h.url())
	until(t, h, q.connected, q)
	for _, message := range []struct {
		typ  websocket.MessageType
		data []byte
	}{{websocket.MessageText, []byte("hello")}, {websocket.MessageBinary, make([]byte, mostBytes+9)}} {
		conn, _, err := websocket.Dial(t.Context(), h.url(), nil)
		require.NoError(t, err)
		require.NoError(t, conn.Write(t.Context(), websocket.MessageBinary, make([]byte, 300))) // noise is no reason
		require.NoError(t, conn.Write(t.Context(), message.typ, message.data))
		closed := make(chan error, 1)
		go func() { _, _, err := conn.Read(context.Background()); closed <- err }()
		until(t, h, func() bool { return len(closed) > 0 }, q)
	}
	until(t, h, func() bool { return h.handler.Stats().Peers == 1 }, q)
	require.EqualValues(t, 2, h.handler.Stats().BadMessages)
	require.EqualValues(t, 2, h.handler.Stats().NoClient)
	require.EqualValues(t, 1, q.conn.Stats().Dials)
}

func TestMisuse(t *testing.T) {
	world := ecs.NewWorld()
	require.Panics(t, func() { NewHandler(nil) })
	require.Panics(t, func() { _, _ = Dial("http://127.0.0.1", nil) })
	require.Panics(t, func() { NewHandler(replication.NewServer(&world, schema()), nil) })
	require.Panics(t, func() { WithNetwork(nil) })
	for _, origin := range []string{"game.example", "https://", "https://game.example/", "https://*.example", ""} {
		require.Panics(t, func() { WithOrigins(origin) }, origin)
	}
	require.PanicsWithValue(t, "web: Dial: WithOrigins is an option of NewHandler: leave it out", func() {
		_, _ = Dial("http://127.0.0.1", newPlayer().client, WithOrigins("*"))
	})
	h := serve(t)
	require.NoError(t, h.handler.WebTransport("127.0.0.1:0", nil))
	require.Panics(t, func() { _ = h.handler.WebTransport("127.0.0.1:0", nil) })
}
