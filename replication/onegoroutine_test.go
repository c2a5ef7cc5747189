package replication

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// oneGoroutine skips a test under the race detector, which makes it ten times slower and finds
// nothing in a single goroutine. It is for slow tests only. Tests that use workers or goroutines
// must not call it.
func oneGoroutine(t testing.TB) {
	t.Helper()
	if raceDetector {
		t.Skip("one goroutine does it all")
	}
}

// TestOneGoroutineTestsStartNone: no test that calls oneGoroutine starts a goroutine in its own
// body. Helpers are not checked.
func TestOneGoroutineTestsStartNone(t *testing.T) {
	oneGoroutine(t) // only reads source code
	names, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	files, claims := token.NewFileSet(), 0
	for _, name := range names {
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
					case "oneGoroutine":
						claimed = true
					case "WithWorkers", "WaitGroup", "Parallel":
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
