//go:build !js && !wasip1

package archcheck

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func contributing(t *testing.T) string {
	data, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	require.NoError(t, err)
	return string(data)
}

func TestContributingShowsTheTable(t *testing.T) {
	if !strings.Contains(contributing(t), "```\n"+printed()+"```\n") {
		t.Errorf("CONTRIBUTING.md does not show the table. It is:\n\n%s", printed())
	}
}

func TestContributingNamesFilesThatExist(t *testing.T) {
	var files []string
	require.NoError(t, filepath.WalkDir(root, func(name string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && path.Ext(name) == ".go" {
			files = append(files, "/"+filepath.ToSlash(name))
		}
		return err
	}))
	named := regexp.MustCompile(`[a-z0-9_/]+\.go\b`).FindAllString(contributing(t), -1)
	require.Greater(t, len(named), 20)
	for _, name := range named {
		if !slices.ContainsFunc(files, func(file string) bool { return strings.HasSuffix(file, "/"+name) }) {
			t.Errorf("CONTRIBUTING.md names %s, which does not exist", name)
		}
	}
}
