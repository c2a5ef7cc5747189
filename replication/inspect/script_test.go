//go:build !js && !wasip1

package inspect

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
)

// TestThePanelsDraw what inspectors of a server and of a client measure, without exceptions. Larger packets than usual
// are no alarm on a path that takes them.
func TestThePanelsDraw(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("it needs Node.js, which is not installed here")
	}
	g := newGame(t, 400, 0, 0)
	p := g.join(t, replication.WithMTU(9000))
	g.join(t)
	c := g.timed(Client(p.client, WithInterpolation(p.shows)))
	g.run(t, 60*20)
	dir := t.TempDir()
	samples := fmt.Sprintf(`{"server": %s, "client": %s}`, g.inspector.AppendJSON(nil, 0, 0), c.AppendJSON(nil, 0, -1))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "samples.json"), []byte(samples), 0o600))
	// By the name, all versions of Node.js take it for a module.
	require.NoError(t, os.WriteFile(filepath.Join(dir, "inspect.mjs"), []byte(script), 0o600))
	out, err := exec.Command(node, filepath.Join("testdata", "panels.mjs"), filepath.Join(dir, "inspect.mjs"),
		filepath.Join(dir, "samples.json")).CombinedOutput()
	require.NoError(t, err, string(out))
	t.Log(string(out))
}
