package page

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestInsert(t *testing.T) {
	const begin, end = "<!-- made by docs/benchmarks/some: begin -->\n", "<!-- made by docs/benchmarks/some: end -->\n"
	page := filepath.Join(t.TempDir(), "page.md")
	require.NoError(t, os.WriteFile(page, []byte("before\n"+begin+"old\n"+end+"after\n"), 0o600))
	require.NoError(t, Insert(page, "some", "table"))
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Equal(t, "before\n"+begin+"\ntable\n"+end+"after\n", string(text))
	require.Error(t, Insert(page, "other", "table"))
	require.Error(t, Insert(filepath.Join(t.TempDir(), "none.md"), "some", "table"))
}
