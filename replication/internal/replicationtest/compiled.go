package replicationtest

import (
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Compiled returns an importer of packages, and of all their imports, as compiled by the go
// command. dir is a directory of the module.
func Compiled(t testing.TB, fset *token.FileSet, dir string, packages []string) types.Importer {
	args := append([]string{"list", "-export", "-deps", "-f", "{{.ImportPath}}={{.Export}}"}, packages...)
	command := exec.Command("go", args...)
	command.Dir = dir
	var stderr strings.Builder
	command.Stderr = &stderr
	out, err := command.Output()
	require.NoError(t, err, stderr.String())
	files := map[string]string{}
	for _, line := range strings.Fields(string(out)) {
		path, file, _ := strings.Cut(line, "=")
		files[path] = file
	}
	return importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		if files[path] == "" {
			return nil, fmt.Errorf("%q is none of the packages %q, nor imported by them", path, packages)
		}
		return os.Open(files[path])
	})
}
