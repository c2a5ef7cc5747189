package replication

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/stretchr/testify/require"
)

// oneGoroutine is [replicationtest.OneGoroutine].
func oneGoroutine(t testing.TB) {
	t.Helper()
	replicationtest.OneGoroutine(t)
}

// TestOneGoroutineTestsStartNone: no test of this package, or of one below it, that calls
// oneGoroutine starts a goroutine in its own body. Helpers are not checked. Such tests may be
// parallel to others: what tests share is only read, and other parallel tests show it.
func TestOneGoroutineTestsStartNone(t *testing.T) {
	oneGoroutine(t) // only reads source code
	names, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	inside, err := filepath.Glob("internal/*/*_test.go")
	require.NoError(t, err)
	beside, err := filepath.Glob("[ir]*/*_test.go") // interpolation and rewind
	require.NoError(t, err)
	files, claims := token.NewFileSet(), 0
	for _, name := range slices.Concat(names, inside, beside) {
		file, err := parser.ParseFile(files, name, nil, 0)
		require.NoError(t, err)
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Name.Name == "oneGoroutine" {
				continue
			}
			claimed, several := false, ""
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.GoStmt:
					several = "a go statement"
				case *ast.Ident:
					switch n.Name {
					case "oneGoroutine", "OneGoroutine":
						claimed = true
					case "WithWorkers", "WaitGroup":
						several = n.Name
					}
				}
				return true
			})
			if claimed {
				claims++
				require.Empty(t, several, "%s calls oneGoroutine, but has more", f.Name.Name)
			}
		}
	}
	require.Greater(t, claims, 50)
}
