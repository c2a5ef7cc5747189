package replication

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// takesHandle lists Arche's methods that panic on a handle that it never returned.
var takesHandle = []string{
	"Get", "GetUnchecked", "Has", "HasUnchecked", "Mask", "Ids", "Relations",
	"Add", "AddFn", "Assign", "Set", "Remove", "RemoveEntity", "Exchange", "ExchangeFn",
}

// safeHandles lists the functions that pass handles to a world without a check, and why each of
// those entities is known to live.
var safeHandles = map[string]string{
	"alive":                    "it is the check",
	"lookUp":                   "checks",
	"expectations.expect":      "checks",
	"worldView.sign":           "expect checked the entity",
	"expectations.match":       "checks",
	"applier.adopt":            "match checked the entity",
	"applier.showState":        "applyReplica and applySubEntity checked",
	"applier.fill":             "showState checked, and spawnEntity",
	"withheld.marks":           "checks",
	"withheld.of":              "marks checks",
	"withheld.has":             "its callers checked, or have the component's address",
	"applier.writeRow":         "update checked",
	"applier.spawnEntity":      "it made the entity, or match checked it",
	"applier.changecomponents": "applyReplica, applySubEntity and detach checked",
	"applier.forgetremoved":    "applyReplica checked",
	"worldView.place":          "present checks",
	"applier.detach":           "present checks each, and no hook runs in between",
	"applier.setTarget":        "checks the holder; the target is from worldView.entity, which checks",
	"worldView.differs":        "its callers have the component's address",
	"worldView.valuesOf":       "its callers have the component's address",
	"relations.of":             "its callers checked",
	"relations.remove":         "removeEntity checked",
}

// TestHandlesAreCheckedInOnePlace: only alive asks Arche whether an entity lives, because Arche's
// answer is wrong for some handles. Calls that need a live entity are made only where it is known
// to live.
//
// The test recognises worlds by the names w and world, and checks that none has another name.
func TestHandlesAreCheckedInOnePlace(t *testing.T) {
	oneGoroutine(t)
	files, used, safe := token.NewFileSet(), map[string]bool{}, map[string]string{}
	for name, why := range safeHandles {
		safe[strings.ToLower(name)] = why // a name is exported or not
	}
	for _, file := range parseFiles(t, files, "*.go", "internal/*/*.go") {
		for _, decl := range file.Decls {
			function := ""
			if f, ok := decl.(*ast.FuncDecl); ok {
				function = strings.ToLower(nameOf(f))
			}
			ast.Inspect(decl, func(n ast.Node) bool {
				if n == nil {
					return true
				}
				at := files.Position(n.Pos())
				switch n := n.(type) {
				case *ast.SelectorExpr:
					switch {
					case n.Sel.Name == "Alive" && isWorld(n.X):
						require.Equal(t, "alive", function, "%v: call alive, which accepts every handle", at)
					case slices.Contains(takesHandle, n.Sel.Name) && isWorld(n.X):
						require.Contains(t, safe, function,
							"%v: %s with a handle: check alive first, or use lookUp, or add the function to safeHandles with the reason", at, n.Sel.Name)
						used[function] = true
					}
				case *ast.Field:
					if isWorldType(n.Type) {
						for _, name := range n.Names {
							require.True(t, isWorld(name), "%v: a world by the name of %s: call it w or world", at, name.Name)
						}
					}
				case *ast.AssignStmt:
					for i, from := range n.Rhs {
						if of, ok := from.(*ast.SelectorExpr); ok && isWorld(of) {
							require.True(t, isWorld(n.Lhs[i]), "%v: a world by another name: call it w or world", at)
						}
					}
				}
				return true
			})
		}
	}
	for name := range safe {
		require.True(t, used[name], "%s gives no world a handle any more: take it out of the list", name)
	}
}

// parsePackage parses the files of the package without its tests.
func parsePackage(t testing.TB, set *token.FileSet) (files []*ast.File) {
	return parseFiles(t, set, "*.go")
}

// parseFiles parses the files that match the patterns, without tests.
func parseFiles(t testing.TB, set *token.FileSet, patterns ...string) (files []*ast.File) {
	var names []string
	for _, pattern := range patterns {
		found, err := filepath.Glob(pattern)
		require.NoError(t, err)
		names = append(names, found...)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, name, nil, 0)
		require.NoError(t, err)
		files = append(files, file)
	}
	require.Greater(t, len(files), 20)
	return files
}

// nameOf returns the name of a function after that of its receiver.
func nameOf(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	of := f.Recv.List[0].Type
	for {
		switch e := of.(type) {
		case *ast.StarExpr:
			of = e.X
		case *ast.IndexExpr:
			of = e.X
		case *ast.IndexListExpr:
			of = e.X
		default:
			return of.(*ast.Ident).Name + "." + f.Name.Name
		}
	}
}

func isWorld(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name == "w" || e.Name == "world" || e.Name == "World"
	case *ast.SelectorExpr:
		return e.Sel.Name == "world" || e.Sel.Name == "World"
	}
	return false
}

func isWorldType(e ast.Expr) bool {
	if star, ok := e.(*ast.StarExpr); ok {
		e = star.X
	}
	s, ok := e.(*ast.SelectorExpr)
	return ok && s.Sel.Name == "World"
}
