//go:build !js && !wasip1

package inspect

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
)

// get asks a handler.
func get(h http.Handler, method, path string) *http.Response {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, path, nil))
	return w.Result()
}

func body(t testing.TB, r *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	return string(b)
}

// TestMounts: the page and what it needs are found at any path.
func TestMounts(t *testing.T) {
	g := newGame(t, 3, 1, 0)
	g.run(t, 60)
	mux := http.NewServeMux()
	mux.Handle("/debug/replication/", g.inspector)
	mux.Handle("/a/b/", http.StripPrefix("/a/b", g.inspector))
	mux.Handle("/c/", http.StripPrefix("/c/", g.inspector))
	for _, mount := range []string{"/debug/replication/", "/a/b/", "/c/"} {
		for path, kind := range map[string]string{
			"":                    "text/html; charset=utf-8",
			"page.js":             kindOfScript,
			"inspect.js":          kindOfScript,
			"json":                "application/json",
			"json?since=2&peer=0": "application/json",
			"metrics":             "text/plain; version=0.0.4; charset=utf-8",
		} {
			r := get(mux, "GET", mount+path)
			require.Equal(t, http.StatusOK, r.StatusCode, mount+path)
			require.Equal(t, kind, r.Header.Get("Content-Type"))
			require.Equal(t, "no-store", r.Header.Get("Cache-Control"))
			require.Equal(t, "nosniff", r.Header.Get("X-Content-Type-Options"))
			require.NotEmpty(t, body(t, r))
			head := get(mux, "HEAD", mount+path)
			require.Equal(t, http.StatusOK, head.StatusCode)
			require.Empty(t, body(t, head))
		}
		require.Equal(t, http.StatusNotFound, get(mux, "GET", mount+"other").StatusCode)
		for _, method := range []string{"POST", "PUT", "DELETE", "OPTIONS"} {
			r := get(mux, method, mount+"json")
			require.Equal(t, http.StatusMethodNotAllowed, r.StatusCode)
			require.Equal(t, "GET, HEAD", r.Header.Get("Allow"))
		}
	}
	for _, query := range []string{"since=x", "peer=1e3", "since=99999999999999999999", "peer="} {
		r := get(mux, "GET", "/debug/replication/json?"+query)
		if query == "peer=" {
			require.Equal(t, http.StatusOK, r.StatusCode)
			continue
		}
		require.Equal(t, http.StatusBadRequest, r.StatusCode, query)
		require.Equal(t, "inspect: since and peer are numbers: json?since=0&peer=3\n", body(t, r))
	}
}

// TestMetrics: the names and types are pinned in testdata; GOLDEN=update writes them anew.
func TestMetrics(t *testing.T) {
	g := newGame(t, 10, 2, 0.1)
	c := g.timed(Client(g.players[0].client, WithInterpolation(g.players[0].shows)))
	g.run(t, 300)
	text := body(t, get(g.inspector, "GET", "/metrics"))
	checkMetrics(t, text)
	require.Contains(t, text, `replication_peer_round_trip_seconds{peer="1",remote="test a \"quoted\\\" <pl\nace>"} 0.05`)
	require.Contains(t, text, `replication_server_packet_size_bytes_bucket{le="75"}`)
	require.Contains(t, text, "\nreplication_server_replicates_total 300\n")
	clients := body(t, get(c, "GET", "/metrics"))
	checkMetrics(t, clients)

	names := strings.Join(regexp.MustCompile(`(?m)^# TYPE .*$`).FindAllString(text+clients, -1), "\n") + "\n"
	file := filepath.Join("testdata", "metrics.txt")
	if os.Getenv("GOLDEN") == "update" {
		require.NoError(t, os.WriteFile(file, []byte(names), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), names)
}

// checkMetrics checks the text format: each metric is declared once, before its samples, which are together and differ.
func checkMetrics(t *testing.T, text string) {
	t.Helper()
	sample := regexp.MustCompile(`^([a-z_]+)(\{([a-z]+="([^"\\\n]|\\["\\n])*",?)+\})? (-?[0-9.e+-]+|NaN|\+Inf)$`)
	seen, lines, now, kind := map[string]bool{}, map[string]bool{}, "", ""
	for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if name, found := strings.CutPrefix(line, "# TYPE "); found {
			now, kind, _ = strings.Cut(name, " ")
			require.False(t, seen[now], "%s is declared twice", now)
			require.Contains(t, []string{"counter", "gauge", "histogram"}, kind)
			require.Equal(t, kind == "counter", strings.HasSuffix(now, "_total"), now)
			seen[now] = true
			continue
		}
		if strings.HasPrefix(line, "# HELP ") {
			continue
		}
		m := sample.FindStringSubmatch(line)
		require.NotNil(t, m, line)
		name := m[1]
		if kind == "histogram" {
			for _, end := range []string{"_bucket", "_sum", "_count"} {
				name = strings.TrimSuffix(name, end)
			}
		}
		require.Equal(t, now, name)
		require.False(t, lines[m[1]+m[2]], "%s has two values", m[1]+m[2])
		lines[m[1]+m[2]] = true
	}
}

// TestMetricsOfManyPeersAreBounded: beyond the limit, peers count in the sums only. Sums don't fall when peers leave.
func TestMetricsOfManyPeersAreBounded(t *testing.T) {
	g := newGame(t, 3, 30, 0, WithPeers(4))
	g.run(t, 60)
	count := func() (peers int, bytes string) {
		text := body(t, get(g.inspector, "GET", "/metrics"))
		checkMetrics(t, text)
		return strings.Count(text, "\nreplication_peer_bytes_total{"),
			regexp.MustCompile(`\nreplication_peers_bytes_total (\S+)`).FindStringSubmatch(text)[1]
	}
	peers, before := count()
	require.Equal(t, 4, peers)
	for _, p := range g.players {
		p.peer.Disconnect(replication.Reason{})
	}
	g.players = nil
	g.run(t, 60)
	peers, after := count()
	require.Zero(t, peers)
	require.Equal(t, before, after)
}

// TestReadersAndTheServerAtOnce is for the race detector: a server ticks and peers come and go while others read.
func TestReadersAndTheServerAtOnce(t *testing.T) {
	g := newGame(t, 20, 8, 0.1)
	c := g.timed(Client(g.players[0].client, WithInterpolation(g.players[0].shows)))
	done := make(chan struct{})
	var readers sync.WaitGroup
	for _, h := range []http.Handler{g.inspector, c} {
		for _, path := range []string{"/", "/json?peer=3", "/json?since=10", "/metrics"} {
			readers.Go(func() {
				for {
					select {
					case <-done:
						return
					default:
					}
					r := get(h, "GET", path)
					if b := body(t, r); strings.HasPrefix(path, "/json") && !json.Valid([]byte(b)) {
						t.Errorf("%s: no JSON: %.200s", path, b)
						return
					}
					time.Sleep(time.Millisecond)
				}
			})
		}
	}
	for n := range 900 {
		g.step(t)
		switch n % 100 {
		case 50:
			g.players[3].peer.Disconnect(replication.Reason{})
			g.players = append(g.players[:3], g.players[4:]...)
		case 90:
			g.join(t)
		}
	}
	close(done)
	readers.Wait()
	require.Greater(t, g.inspector.values.n, int64(20))
}

// TestThePageNeedsNothingElse: what it loads is served, and its scripts have no other imports.
func TestThePageNeedsNothingElse(t *testing.T) {
	for _, text := range []string{page, pageScript, script} {
		for _, m := range regexp.MustCompile(`(?:src=|href=|import\(|\} from )"([^"]*)"`).FindAllStringSubmatch(text, -1) {
			require.Contains(t, []string{"data:,", "page.js", "./inspect.js", "/debug/replication/inspect.js"}, m[1])
		}
		require.NotContains(t, text, "http://")
		require.NotContains(t, text, "https://")
	}
}

// TestStrangersAreNotShown: a peer that has not joined is in no table, no metric and no sum; one that is silent holds nothing
// back.
func TestStrangersAreNotShown(t *testing.T) {
	g := newGame(t, 40, 1, 0)
	g.server.Connect(func([]byte) error { return nil }, replication.WithMTU(9000))
	g.run(t, 120)
	late := g.timed(Server(g.server))
	g.run(t, 120)
	for _, s := range []*Inspector{g.inspector, late} {
		a := read(t, s, 0, 1)
		require.Len(t, a.Peers, 1)
		require.Nil(t, a.Peer)
		require.Equal(t, 1100, a.MTU, "the peer's")
		turn, _ := sum(a.Samples["turn"])
		require.Zero(t, turn)
	}
	require.Equal(t, 1, strings.Count(g.inspector.metrics(), "\nreplication_peer_bytes_total{"))

	g.players = nil // what waits for a client that acknowledges nothing is not held back
	for range 600 {
		for _, e := range g.entities {
			(*Position)(g.world.Get(e, g.ids[0])).X += 0.02
		}
		g.run(t, 1)
	}
	a := read(t, g.inspector, 0, -1)
	require.Len(t, a.Peers, 1)
	require.Zero(t, a.Peers[0]["turn"])
}

// TestPartsOfTheLibraryAreNotShown: a schema with conditions has a component that no game has registered.
func TestPartsOfTheLibraryAreNotShown(t *testing.T) {
	s := replication.NewSchema()
	replication.Register[Position](s)
	replication.Register[Hull](s, replication.OwnerOnly())
	world := ecs.NewWorld()
	inspector := Server(replication.NewServer(&world, s))
	a := read(t, inspector, 0, -1)
	require.Len(t, a.Components, 2)
	require.Equal(t, "Hull", a.Components[1].Name)
	require.NotContains(t, inspector.metrics(), "subEntity")
}
