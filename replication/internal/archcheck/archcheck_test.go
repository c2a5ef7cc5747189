//go:build !js && !wasip1

package archcheck

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The limits. Instead of raising one, split something in two.
const (
	maxFields = 25   // of a struct
	maxFiles  = 3    // with methods of one type
	maxLines  = 3000 // of a package, without tests; of the public one also without comments
)

func TestImportsAreThoseOfTheTable(t *testing.T) {
	tree := load(t)
	places := map[string]int{}
	for i, r := range rooms {
		require.NotContains(t, places, r.name, "the table has a package twice")
		places[r.name] = i
	}
	fail := func(format string, args ...any) { t.Errorf(format+"\n\nThe table:\n\n%s", append(args, printed())...) }
	for i := range rooms {
		r := &rooms[i]
		for _, name := range r.list() {
			place, isRoom := places[name]
			if isRoom && place <= i {
				fail("The table has an arrow that points up, from %s to %s.", r.name, name)
			}
			if !isRoom && !slices.Contains(outside, name) {
				fail("The table has an arrow from %s to %s, which it does not know.", r.name, name)
			}
		}
		if tree.pkgs[r.path()] == nil {
			fail("The table has %s, which does not exist.", r.name)
		}
	}
	for _, p := range tree.pkgs {
		if p.onlyForTests() {
			continue
		}
		place, ok := places[p.name()]
		if !ok || rooms[place].path() != p.dir {
			fail("Package %s is not in the table.", p.dir)
			continue
		}
		allowed := rooms[place].list()
		var imports []string
		for _, imported := range p.imports {
			name, known := tableName(imported)
			if !known {
				continue
			}
			imports = append(imports, name)
			if !slices.Contains(allowed, name) {
				fail("%s imports %s, and the table has no such arrow.", p.dir, imported)
			}
		}
		for _, name := range allowed {
			if !slices.Contains(imports, name) {
				fail("%s does not import %s any more: take the arrow out of the table.", p.dir, name)
			}
		}
	}
}

// tableName returns the table's name of an imported package, and false for the standard library and
// other modules, which the linter checks.
func tableName(imported string) (string, bool) {
	if imported == "github.com/mlange-42/arche/ecs" {
		return "ecs", true
	}
	name, ours := strings.CutPrefix(imported, module+"/")
	return strings.TrimPrefix(name, face+"/internal/"), ours
}

func TestStructsArePlain(t *testing.T) {
	tree := load(t)
	counts := map[string]int{}
	for _, p := range tree.pkgs {
		maps.Copy(counts, tree.fieldCounts(p))
	}
	checkCeilings(t, "fields", maxFields, counts, largeStructs)
}

func TestMethodsOfATypeAreInFewFiles(t *testing.T) {
	tree := load(t)
	counts := map[string]int{}
	for _, p := range tree.pkgs {
		maps.Copy(counts, tree.fileCounts(p))
	}
	checkCeilings(t, "files with methods", maxFiles, counts, scatteredTypes)
}

func TestPackagesAreSmall(t *testing.T) {
	tree := load(t)
	counts := map[string]int{}
	for _, p := range tree.pkgs {
		counts[p.name()] = p.lines
	}
	checkCeilings(t, "lines without tests", maxLines, counts, largePackages)
}

// checkCeilings fails for counts over the limit or over their own ceiling, and for ceilings that
// are not needed any more or too high. A tolerance of a 30th of the limit spares ceilings from
// following every removed line.
func checkCeilings(t *testing.T, what string, limit int, counts, ceilings map[string]int) {
	for name, n := range counts {
		ceiling, excepted := ceilings[name]
		switch {
		case !excepted && n > limit:
			t.Errorf("%s has %d %s; %d are allowed", name, n, what, limit)
		case excepted && n > ceiling:
			t.Errorf("%s has %d %s; it is an exception that may have %d, and no more", name, n, what, ceiling)
		case excepted && n <= limit:
			t.Errorf("%s has %d %s, and needs no exception: take it out of exceptions_test.go", name, n, what)
		case excepted && n < ceiling-limit/30:
			t.Errorf("%s has only %d %s: lower its ceiling of %d in exceptions_test.go", name, n, what, ceiling)
		}
	}
	for name := range ceilings {
		if _, ok := counts[name]; !ok {
			t.Errorf("exceptions_test.go has %s, which does not exist", name)
		}
	}
}

func TestExportedNamesAreUsedElsewhere(t *testing.T) {
	unused := load(t).check(t).unusedNames()
	for _, name := range unused {
		if !slices.Contains(unusedExports, name) {
			t.Errorf("no other package uses %s: unexport it", name)
		}
	}
	for _, name := range unusedExports {
		if !slices.Contains(unused, name) {
			t.Errorf("%s is used, or gone: take it out of exceptions_test.go", name)
		}
	}
}
