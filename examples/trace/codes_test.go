package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCodesOfARow: -codes prints what the library would send, at full width.
func TestCodesOfARow(t *testing.T) {
	const trace = `tick,entity,Position.X,Position.Y,Health.HP
uint32,uint32,"float32 range=-50:50,step=0.01","float32 range=-50:50,step=0.01",uint8
0,1,0.5,-3,100
0,2,7,7,
3,1,0.6,-3,95
9,2,,,
`
	var out, errors bytes.Buffer
	require.Equal(t, exitOK, command([]string{"-codes", "-"}, strings.NewReader(trace), &out, &errors), errors.String())
	require.Equal(t, `tick,entity,Position.0,Position.1,Health.0
0,1,5050,4700,100
0,2,5700,5700,
3,1,5060,4700,95
9,2,,,
`, out.String())

	out.Reset()
	require.Equal(t, exitUsage, command([]string{"-codes", "-"}, strings.NewReader("tick\n"), &out, &errors))
	file, err := os.ReadFile("testdata/crowd.csv")
	require.NoError(t, err)
	out.Reset()
	require.Equal(t, exitOK, command([]string{"-ticks", "10", "-codes", "-"}, bytes.NewReader(file), &out, &errors))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Greater(t, len(lines), 20)
	require.True(t, strings.HasPrefix(lines[len(lines)-1], "9,"), lines[len(lines)-1])
}
