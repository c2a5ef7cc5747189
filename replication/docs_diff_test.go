//go:build !js && !wasip1

package replication_test

import (
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
)

// TestGuideChangesItsFirstProgram: the changes that docs/interpolation.md shows fit the program of
// docs/getting-started.md, those of docs/prediction.md fit the result, both results compile, and neither page asks for
// more lines of new text than it may.
func TestGuideChangesItsFirstProgram(t *testing.T) {
	t.Parallel()
	program := onlyBlock(t, "getting-started.md", func(b docBlock) bool { return strings.HasPrefix(b.text, "package ") })
	fset := token.NewFileSet()
	imported := replicationtest.Compiled(t, fset, docsRoot, docImports)
	for _, step := range []struct {
		page string
		most int
	}{{"interpolation.md", 15}, {"prediction.md", 25}} {
		changes := onlyBlock(t, step.page, func(b docBlock) bool { return b.language == "diff" })
		written := 0
		for _, hunk := range strings.Split(changes.text, "@@\n") {
			var before, after strings.Builder
			for line := range strings.Lines(hunk) {
				if line[0] != '+' {
					before.WriteString(line[1:])
				}
				if line[0] != '-' {
					after.WriteString(line[1:])
				}
				if line[0] == '+' {
					written++
				}
			}
			require.Equal(t, 1, strings.Count(program.text, before.String()), "%v: the program has not these lines once:\n%s",
				&changes, before.String())
			program.text = strings.Replace(program.text, before.String(), after.String(), 1)
		}
		require.Positive(t, written)
		require.LessOrEqual(t, written, step.most, step.page)
		require.NoError(t, checkBlock(fset, imported, &program), step.page)
	}
}

// onlyBlock returns the one block of a page of the guide that has a property.
func onlyBlock(t *testing.T, page string, is func(docBlock) bool) docBlock {
	all, _ := docBlocks(t, filepath.Join(docsRoot, "docs", page))
	i := slices.IndexFunc(all, is)
	require.GreaterOrEqual(t, i, 0, page)
	require.False(t, slices.ContainsFunc(all[i+1:], is), "%s has more than one such block", page)
	return all[i]
}
