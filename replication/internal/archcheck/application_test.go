//go:build !js && !wasip1

package archcheck

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	arche  = "github.com/mlange-42/arche"
	quicGo = "github.com/quic-go/quic-go"
)

// TestApplicationsNeedArcheAlone builds applications outside of this module. Their go.mod files and binaries name the
// modules that they depend on.
func TestApplicationsNeedArcheAlone(t *testing.T) {
	if testing.Short() {
		t.Skip("it links programs")
	}
	for _, c := range []struct {
		name    string
		imports []string
		quic    bool // shows that the test sees other modules
	}{
		{"the library", []string{"replication"}, false},
		{"all but QUIC", []string{
			"bitbuf", "quantize", "delta", "replication", "replication/interpolation", "replication/rewind",
			"replication/loop", "replication/netsim", "replication/inspect", "replication/transport",
			"replication/transport/udp",
		}, false},
		{"QUIC", []string{"replication", "replication/transport/quic"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			required, linked := buildApplication(t, c.imports)
			for where, modules := range map[string][]string{"go.mod": required, "binary": linked} {
				if c.quic {
					require.Contains(t, modules, quicGo, where)
				} else {
					require.ElementsMatch(t, []string{module, arche}, modules, where)
				}
			}
		})
	}
}

// buildApplication builds a program that imports Arche and packages of this module. It returns the modules that its
// go.mod requires and those that its binary names.
func buildApplication(t *testing.T, imports []string) (required, linked []string) {
	t.Helper()
	checkout, err := filepath.Abs("../../..")
	require.NoError(t, err)
	sums, err := os.ReadFile(filepath.Join(checkout, "go.sum")) // so that nothing has to be looked up
	require.NoError(t, err)
	program := "package main\n\nimport (\n\t_ \"" + arche + "/ecs\"\n"
	for _, path := range imports {
		program += "\t_ \"" + module + "/" + path + "\"\n"
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"main.go": program + ")\n\nfunc main() {}\n", "go.sum": string(sums), "go.mod": "module application\n\ngo 1.25.0\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	run := func(args ...string) []byte {
		cmd := exec.Command("go", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		require.NoError(t, err, "go %v: %s", args, &stderr)
		return out
	}
	run("mod", "edit", "-require="+module+"@v0.0.0", "-replace="+module+"="+checkout)
	run("mod", "tidy")
	var mod struct{ Require []struct{ Path string } }
	require.NoError(t, json.Unmarshal(run("mod", "edit", "-json"), &mod))
	for _, r := range mod.Require {
		required = append(required, r.Path)
	}
	binary := filepath.Join(dir, "application.exe")
	run("build", "-o", binary)
	info, err := buildinfo.ReadFile(binary) // what go version -m prints
	require.NoError(t, err)
	for _, d := range info.Deps {
		linked = append(linked, d.Path)
	}
	return required, linked
}
