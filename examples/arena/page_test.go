//go:build !js

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/arche-replicate/arche-replicate/replication/transport/web"
)

// startPage runs the arena with a page and returns its address.
func startPage(ctx context.Context, t *testing.T) (url string, done <-chan outcome) {
	t.Helper()
	return startMatch(ctx, t, "-http", "127.0.0.1:0", "-open=false", "-bots", "20")
}

// ask makes a request and returns the status and what the answer has.
func ask(t *testing.T, method, url, body string, header ...string) (status int, text string, h http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer func() { require.NoError(t, answer.Body.Close()) }()
	all, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return answer.StatusCode, string(all), answer.Header
}

func TestAPageServesPlayers(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	url, done := startPage(ctx, t)

	status, text, h := ask(t, "GET", url, "")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, text, "<title>arena</title>")
	require.Contains(t, h.Get("Content-Type"), "text/html")
	status, text, _ = ask(t, "GET", url+"wasm_exec.js", "")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, text, "globalThis.Go")
	status, text, _ = ask(t, "GET", url+"status", "")
	require.Equal(t, http.StatusOK, status)
	var p progress
	require.NoError(t, json.Unmarshal([]byte(text), &p))
	require.Empty(t, p.Error)
	status, _, _ = ask(t, "GET", url+"debug/replication/json", "")
	require.Equal(t, http.StatusOK, status)

	// A player by each coding; the same sums, once nothing moves.
	for i, path := range []string{"play", "play/compact"} {
		client := newClient(i, true, true)
		conn, err := web.Dial(url+path, client.Client)
		require.NoError(t, err)
		client.receive, client.close = conn.Poll, func() { require.NoError(t, conn.Close()) }
		for end := time.Now().Add(10 * time.Second); client.Ship < 0 && time.Now().Before(end); {
			require.NoError(t, client.frame(time.Second/60))
			time.Sleep(time.Second / 60)
		}
		require.GreaterOrEqual(t, client.Ship, 0)
		require.Equal(t, path == "play/compact", client.Client.Stats().Compact)
		status, _, _ = ask(t, "POST", url+"break", `{"action":"freeze"}`)
		require.Equal(t, http.StatusOK, status)
		var server pageState
		require.Eventually(t, func() bool {
			require.NoError(t, client.frame(time.Second/60))
			_, text, _ := ask(t, "GET", url+"debug/arena.json", "")
			require.NoError(t, json.Unmarshal([]byte(text), &server))
			world := client.reader.Census(client.Client.Entities())
			return server.Frozen && server.Sum == hex(world.Sum) && server.Entities == world.Entities
		}, 10*time.Second, 10*time.Millisecond)
		require.Equal(t, 1, server.Players)
		status, _, _ = ask(t, "POST", url+"break", `{"action":"resume"}`)
		require.Equal(t, http.StatusOK, status)
		client.close()
		require.Eventually(t, func() bool {
			_, text, _ := ask(t, "GET", url+"debug/arena.json", "")
			require.NoError(t, json.Unmarshal([]byte(text), &server))
			return server.Players == 0
		}, 10*time.Second, 10*time.Millisecond)
	}

	require.Eventually(t, func() bool {
		_, text, _ := ask(t, "GET", url+"debug/truth", "")
		return len(text) > 4 && len(text) <= 4+16*20 && len(text)%16 == 4 // some are shot down
	}, 5*time.Second, 10*time.Millisecond)
	stop()
	result := await(t, done)
	require.True(t, result.ok())
	require.Equal(t, 2, result.Clients)
}

func TestOnlyPagesOfThisMachineBreakTheNetwork(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	url, done := startPage(ctx, t)
	for _, header := range [][]string{
		{"Sec-Fetch-Site", "cross-site"},
		{"Origin", "http://elsewhere.example"},
		{"Host", "elsewhere.example"},
	} {
		status, _, _ := ask(t, "POST", url+"break", `{"loss":1}`, header...)
		require.Equal(t, http.StatusForbidden, status, header)
	}
	status, _, _ := ask(t, "GET", url+"debug/arena.json", "", "Host", "elsewhere.example:80")
	require.Equal(t, http.StatusForbidden, status)
	for body, want := range map[string]string{
		`{"loss":1.5}`:         "must be between 0 and 1",
		`{"loss":"much"}`:      "no JSON object with settings",
		`{"lossy":1}`:          "unknown field",
		`{"preset":"train"}`:   "no profile is named",
		`{"action":"explode"}`: "there is no action",
		`{"latencyMs":1e300}`:  "Latency",
		`{"bandwidthKbit":-1}`: "Bandwidth",
	} {
		status, text, _ := ask(t, "POST", url+"break", body)
		require.Equal(t, http.StatusBadRequest, status, body)
		require.Contains(t, text, want)
	}
	status, _, _ = ask(t, "DELETE", url+"break", "")
	require.Equal(t, http.StatusMethodNotAllowed, status)
	_, text, _ := ask(t, "GET", url+"break", "")
	var s settings
	require.NoError(t, json.Unmarshal([]byte(text), &s))
	require.Equal(t, settings{Loss: 0.05, LatencyMs: 50, JitterMs: 10, Duplicate: 0.01, Reorder: 0.01}, s)
	for _, action := range []string{"teleport", "reset", "freeze", "resume"} {
		status, _, _ = ask(t, "POST", url+"break", `{"action":"`+action+`"}`)
		require.Equal(t, http.StatusOK, status)
	}
	stop()
	require.True(t, await(t, done).ok())
}

func TestSettingsOfTheNetwork(t *testing.T) {
	c := testConfig(t, "-loss", "0", "-latency", "0", "-jitter", "0", "-dup", "0", "-reorder", "0")
	b := newBreaker(&c)
	defer b.close()
	change := func(text string) {
		action, err := b.change(strings.NewReader(text))
		require.NoError(t, err)
		require.Empty(t, action)
	}
	change(`{"reorder":0.5,"bandwidthKbit":80}`)
	require.Equal(t, netsim.Profile{Reorder: 0.5, ReorderBy: overtaking, Bandwidth: 10_000}, b.network.Profile())
	change(`{"preset":"mobile"}`)
	require.Equal(t, netsim.Mobile, b.network.Profile())
	require.Equal(t, "mobile", b.settings().Preset)
	change(`{"loss":0.3}`)
	require.Empty(t, b.settings().Preset)
	require.Equal(t, netsim.Mobile.Latency, b.network.Profile().Latency)
	b.copyTo(&c)
	require.InDelta(t, 0.3, c.loss, 0)

	_, err := b.change(strings.NewReader(`{"action":"blackout"}`))
	require.NoError(t, err)
	require.InDelta(t, 1, b.network.Profile().Loss, 0)
	change(`{"loss":0.2}`) // takes effect afterwards
	require.InDelta(t, 1, b.network.Profile().Loss, 0)
	require.InDelta(t, 5000, b.settings().BlackoutMs, 1000)
	b.heal()
	require.Equal(t, netsim.Profile{}, b.network.Profile())
	change(`{"loss":0.2}`)
	require.Equal(t, netsim.Profile{}, b.network.Profile(), "worlds are compared")
}

func TestChangesOfTheNetwork(t *testing.T) {
	c := testConfig(t, "-loss", "0.05")
	b := newBreaker(&c)
	defer b.close()
	change := func(text string, rests bool) string {
		_, err := b.change(strings.NewReader(text))
		require.NoError(t, err)
		if rests {
			b.changed = b.changed.Add(-restTime)
		}
		return b.changes()
	}
	require.Empty(t, change(`{}`, true))
	require.Empty(t, change(`{"loss":0.1}`, false), "the slider is moved on")
	require.Empty(t, change(`{"loss":0.2}`, false))
	require.Equal(t, "loss 30 %, latency 75 ms", change(`{"loss":0.3,"latencyMs":75}`, true))
	require.Empty(t, b.changes(), "once")
	require.Equal(t, "mobile network", change(`{"preset":"mobile"}`, false))
	require.Equal(t, "bandwidth 256 kbit/s", change(`{"bandwidthKbit":256}`, true))
	require.Equal(t, "bandwidth unlimited", change(`{"bandwidthKbit":0}`, true))
	require.Equal(t, "blackout", change(`{"action":"blackout"}`, false))
	require.Empty(t, change(`{"action":"blackout"}`, true), "it is dark already")
}

func TestAPageWithAReplay(t *testing.T) {
	file, _ := recordedFile(t)
	complete, err := os.ReadFile(file)
	require.NoError(t, err)
	c, err := parseFlags([]string{"-replay", file, "-http", "127.0.0.1:0", "-open=false"}, io.Discard)
	require.NoError(t, err)
	listening, done := make(chan string, 1), make(chan error, 1)
	c.onListen = func(address string) { listening <- address }
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() {
		_, err := runReplay(ctx, &c, &screen{})
		done <- err
	}()
	url := <-listening
	_, text, _ := ask(t, "GET", url+"status", "")
	var p progress
	require.NoError(t, json.Unmarshal([]byte(text), &p))
	require.Equal(t, "match.rec", p.Recording)
	status, text, _ := ask(t, "GET", url+"recording", "")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, string(complete), text)
	status, _, h := ask(t, "GET", url+"debug/replication/inspect.js", "")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, h.Get("Content-Type"), "javascript")
	stop()
	require.NoError(t, <-done)
}

func TestAReplayOutsideACloneServesNoPage(t *testing.T) {
	file, _ := recordedFile(t)
	t.Chdir(t.TempDir())
	var stdout, stderr bytes.Buffer
	require.Equal(t, exitFailed, run(t.Context(), []string{"-replay", file, "-http", "127.0.0.1:0", "-open=false"}, &stdout, &stderr))
	require.Contains(t, strings.Join(strings.Fields(stderr.String()), " "), "run the arena in a clone of its repository")
	require.Contains(t, stderr.String(), "with -http= it is played here")
	require.NotContains(t, stdout.String(), "play at")
}

func TestTheTimelineOfAReplay(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	module := filepath.Join(t.TempDir(), "marks.mjs")
	script, err := pageFiles.ReadFile("page/marks.js")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(module, script, 0o600))
	out, err := exec.Command(node, filepath.Join("testdata", "marks.mjs"), module).CombinedOutput()
	require.NoError(t, err, string(out))
}

func TestTheNextPortIsTaken(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, taken.Close()) }()
	_, err = listenNear(taken.Addr().String(), false)
	require.Error(t, err)
	next, err := listenNear(taken.Addr().String(), true)
	require.NoError(t, err)
	require.NotEqual(t, taken.Addr(), next.Addr())
	require.NoError(t, next.Close())
}
