package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestStylesFollowTheEnvironment(t *testing.T) {
	tests := []struct {
		env  map[string]string
		want style
		ok   bool
	}{
		{map[string]string{"TERM": "xterm", "LANG": "de_DE.UTF-8"}, style{unicode: true, colour: true}, true},
		{map[string]string{"TERM": "xterm", "LANG": "de_DE.UTF-8", "LC_ALL": "C"}, style{colour: true}, true},
		{map[string]string{"TERM": "xterm", "LC_CTYPE": "C.utf8", "NO_COLOR": "1"}, style{unicode: true}, true},
		{map[string]string{"TERM": "vt100"}, style{colour: true}, true},
		{map[string]string{"TERM": "dumb"}, style{colour: true}, false},
		{map[string]string{}, style{colour: true}, false},
	}
	for _, tt := range tests {
		got, ok := styleOf(func(name string) string { return tt.env[name] })
		require.Equal(t, tt.want, got, "%v", tt.env)
		require.Equal(t, tt.ok, ok, "%v", tt.env)
	}
}

func TestATerminalIsGivenBack(t *testing.T) {
	var out bytes.Buffer
	columns, rows := 10, 3
	term := &terminal{out: &out, size: func() (int, int) { return columns, rows }}
	show := func(lines ...string) string {
		out.Reset()
		term.show(func(c, r int, _ style) []string {
			require.Equal(t, []int{columns, rows}, []int{c, r})
			return lines
		})
		return out.String()
	}
	first := show("a", "b", "c")
	require.True(t, strings.HasPrefix(first, enterSequence))
	require.Contains(t, first, "\x1b[3;1H\x1b[2Kc")
	require.False(t, term.ready(), "it is too early for another")

	require.Equal(t, "\x1b[2;1H\x1b[2Kx", show("a", "x", "c"), "only what has changed")
	columns = 8
	require.Contains(t, show("a", "x", "c"), "\x1b[2J", "all, when the size changes")
	term.painted = time.Now().Add(-time.Minute)
	require.Contains(t, show("a", "x", "c"), "\x1b[1;1H\x1b[2Ka", "all, now and then")

	out.Reset()
	term.leave()
	term.leave()
	require.Equal(t, leaveSequence, out.String(), "once")
	require.Empty(t, show("late"))
	require.False(t, term.ready())
}

func TestATerminalThatWasNotUsedIsLeftAlone(t *testing.T) {
	var out bytes.Buffer
	(&terminal{out: &out}).leave()
	require.Empty(t, out.String())
}
