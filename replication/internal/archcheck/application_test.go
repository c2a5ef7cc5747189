//go:build !js && !wasip1

package archcheck

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWhatApplicationsRequire makes modules that import some packages, and compares what go mod tidy writes into their
// go.mod, and what is in their binaries, with the modules that they are meant to take. All modules come from the cache
// of the go command, which has them since the tests of this module need them, too.
func TestWhatApplicationsRequire(t *testing.T) {
	if testing.Short() {
		t.Skip("builds programs")
	}
	const arche, quic = "github.com/mlange-42/arche", "github.com/quic-go/quic-go"
	for _, app := range []struct {
		imports string
		modules []string // beside this one
	}{
		{"replication", []string{arche}},
		{"replication replication/interpolation replication/rewind replication/netsim replication/loop", []string{arche}},
		{"replication replication/transport/udp", []string{arche}},
		{"replication replication/transport/quic", []string{
			arche, quic, "golang.org/x/crypto", "golang.org/x/net", "golang.org/x/sys",
		}},
	} {
		t.Run(strings.ReplaceAll(app.imports, "/", "."), func(t *testing.T) {
			t.Parallel()
			want := append([]string{module}, app.modules...)
			slices.Sort(want)
			required, linked := application(t, strings.Fields(app.imports))
			require.Equal(t, want, required, "in go.mod")
			require.Equal(t, want, linked, "in the binary")
		})
	}
}

// application makes a module that imports some packages of this one, and returns the modules in its go.mod and in its
// binary.
func application(t *testing.T, imports []string) (required, linked []string) {
	root, err := filepath.Abs("../../..")
	require.NoError(t, err)
	dir := t.TempDir()
	run := func(args ...string) []byte {
		cmd := exec.Command("go", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod -buildvcs=false", "GOPROXY=off", "GOSUMDB=off", "GOWORK=off")
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		require.NoError(t, err, "go %v: %s", args, stderr.String())
		return out
	}
	var source strings.Builder
	source.WriteString("package main\n\nimport (\n\t\"github.com/mlange-42/arche/ecs\"\n\n")
	for _, path := range imports {
		name := "_"
		if path == face {
			name = face
		}
		fmt.Fprintf(&source, "\t%s %q\n", name, module+"/"+path)
	}
	source.WriteString(`)

func main() {
	world := ecs.NewWorld()
	replication.NewServer(&world, replication.NewSchema()).Replicate()
}
`)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(source.String()), 0o600))
	run("mod", "init", "example.com/game")
	run("mod", "edit", "-go=1.25.0", "-require="+module+"@v0.0.0", "-replace="+module+"="+root)
	run("mod", "tidy")
	var file struct{ Require []struct{ Path string } }
	require.NoError(t, json.Unmarshal(run("mod", "edit", "-json"), &file))
	for _, r := range file.Require {
		required = append(required, r.Path)
	}
	run("build", "-o", "game", ".")
	for line := range strings.Lines(string(run("version", "-m", "game"))) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "dep" {
			linked = append(linked, f[1])
		}
	}
	slices.Sort(required)
	slices.Sort(linked)
	return required, linked
}
