//go:build !js && !wasip1

package archcheck

import (
	"bytes"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/stretchr/testify/require"
)

const (
	module = "github.com/arche-replicate/arche-replicate"
	root   = "../../.." // of the module
)

// A pkg is a package under replication.
type pkg struct {
	dir           string // from the root of the module
	code          []*ast.File
	tests, xtests []*ast.File // of the package; of the package _test
	imports       []string    // of code
	lines         int         // of code
	types         *types.Package
}

// name returns the table's name of the package.
func (p *pkg) name() string { return strings.TrimPrefix(p.dir, face+"/internal/") }

func (p *pkg) internal() bool { return p.name() != p.dir }

// onlyForTests reports whether the package is one of forTests.
func (p *pkg) onlyForTests() bool { return p.internal() && slices.Contains(forTests, p.name()) }

// A tree is everything under replication, as this platform builds it.
type tree struct {
	fset *token.FileSet
	pkgs map[string]*pkg // by directory
}

func load(t *testing.T) *tree {
	tree := &tree{fset: token.NewFileSet(), pkgs: map[string]*pkg{}}
	top := filepath.Join(root, face)
	require.NoError(t, filepath.WalkDir(top, func(dir string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		if entry.Name() == "testdata" {
			return filepath.SkipDir
		}
		found, err := build.Default.ImportDir(dir, 0)
		if _, none := err.(*build.NoGoError); none {
			return nil
		}
		require.NoError(t, err)
		relative, err := filepath.Rel(root, dir)
		require.NoError(t, err)
		p := &pkg{dir: filepath.ToSlash(relative), imports: found.Imports}
		p.code = tree.parse(t, dir, found.GoFiles)
		p.tests = tree.parse(t, dir, found.TestGoFiles)
		p.xtests = tree.parse(t, dir, found.XTestGoFiles)
		for _, file := range p.code {
			p.lines += tree.fset.File(file.FileStart).LineCount()
			if p.dir == face { // its doc comments are documentation, which must not be rationed
				p.lines -= commentLines(t, tree.fset.Position(file.FileStart).Filename)
			}
		}
		tree.pkgs[p.dir] = p
		return nil
	}))
	require.Greater(t, len(tree.pkgs), 10)
	return tree
}

func (tree *tree) parse(t *testing.T, dir string, names []string) (files []*ast.File) {
	for _, name := range names {
		file, err := parser.ParseFile(tree.fset, filepath.Join(dir, name), nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		files = append(files, file)
	}
	return files
}

// commentLines returns how many lines of a file are comments.
func commentLines(t *testing.T, file string) (n int) {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	for line := range bytes.Lines(text) {
		if bytes.HasPrefix(bytes.TrimSpace(line), []byte("//")) {
			n++
		}
	}
	return n
}

// file returns the base name of the file of a position.
func (tree *tree) file(pos token.Pos) string { return filepath.Base(tree.fset.Position(pos).Filename) }

// A checker type-checks the packages under replication from source, so that an object has the same
// position for all its users. Other packages are imported compiled.
type checker struct {
	*tree
	compiled types.Importer
	info     types.Info
	users    []user
}

// A user is a type-checked part of a package: its code, or its tests.
type user struct {
	dir  string
	info *types.Info
}

// check type-checks everything, tests too.
func (tree *tree) check(t *testing.T) *checker {
	c := &checker{tree: tree, compiled: tree.compiled(t)}
	for _, p := range tree.pkgs {
		_, err := c.Import(module + "/" + p.dir)
		require.NoError(t, err)
	}
	for _, p := range tree.pkgs {
		within, err := c.checkFiles(p, p.dir, append(slices.Clone(p.code), p.tests...), c)
		require.NoError(t, err)
		if len(p.xtests) > 0 {
			// They import the package including its tests, which may export something to them.
			// Others import it without tests, which makes two types of one; so errors are ignored.
			_, _ = c.checkFiles(p, p.dir+"_test", p.xtests, overlay{c, module + "/" + p.dir, within})
		}
	}
	return c
}

func (c *checker) checkFiles(p *pkg, name string, files []*ast.File, imports types.Importer) (*types.Package, error) {
	info := &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{},
		Selections: map[*ast.SelectorExpr]*types.Selection{},
	}
	c.users = append(c.users, user{p.dir, info})
	var first error
	config := types.Config{Importer: imports, Error: func(err error) {
		if first == nil {
			first = err
		}
	}}
	checked, _ := config.Check(module+"/"+name, c.fset, files, info)
	return checked, first
}

// Import returns a package by its path. It implements [types.Importer].
func (c *checker) Import(name string) (*types.Package, error) {
	p := c.pkgs[strings.TrimPrefix(name, module+"/")]
	if p == nil {
		return c.compiled.Import(name)
	}
	var err error
	if p.types == nil {
		p.types, err = c.checkFiles(p, p.dir, p.code, c)
	}
	return p.types, err
}

// An overlay is an importer with another version of one package.
type overlay struct {
	types.Importer
	path    string
	version *types.Package
}

func (o overlay) Import(name string) (*types.Package, error) {
	if name == o.path {
		return o.version, nil
	}
	return o.Importer.Import(name)
}

// compiled returns an importer for packages from elsewhere.
func (tree *tree) compiled(t *testing.T) types.Importer {
	var paths []string
	for _, p := range tree.pkgs {
		for _, file := range slices.Concat(p.code, p.tests, p.xtests) {
			for _, spec := range file.Imports {
				name := strings.Trim(spec.Path.Value, `"`)
				if tree.pkgs[strings.TrimPrefix(name, module+"/")] == nil && name != "unsafe" {
					paths = append(paths, name)
				}
			}
		}
	}
	slices.Sort(paths)
	return replicationtest.Compiled(t, tree.fset, root, slices.Compact(paths))
}
