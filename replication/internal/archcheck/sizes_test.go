//go:build !js && !wasip1

package archcheck

import "go/ast"

// fieldCounts returns the number of fields of each struct in a package, except for structs of
// counters.
func (tree *tree) fieldCounts(p *pkg) map[string]int {
	counts := map[string]int{}
	if p.name() == "counters" {
		return counts
	}
	for _, file := range p.code {
		if p.dir == face && tree.file(file.Pos()) == "stats.go" {
			continue
		}
		ast.Inspect(file, func(node ast.Node) bool {
			spec, ok := node.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if fields, ok := spec.Type.(*ast.StructType); ok {
				counts[p.name()+"."+spec.Name.Name] = fields.Fields.NumFields()
			}
			return true
		})
	}
	return counts
}

// fileCounts returns the number of files with methods of each type in a package.
func (tree *tree) fileCounts(p *pkg) map[string]int {
	files := map[string]map[string]bool{}
	for _, file := range p.code {
		for _, decl := range file.Decls {
			method, ok := decl.(*ast.FuncDecl)
			if !ok || method.Recv == nil {
				continue
			}
			name := p.name() + "." + receiver(method.Recv.List[0].Type)
			if files[name] == nil {
				files[name] = map[string]bool{}
			}
			files[name][tree.file(file.Pos())] = true
		}
	}
	counts := map[string]int{}
	for name, set := range files {
		counts[name] = len(set)
	}
	return counts
}

// receiver returns the name of the type of a receiver.
func receiver(expr ast.Expr) string {
	switch expr := expr.(type) {
	case *ast.StarExpr:
		return receiver(expr.X)
	case *ast.IndexExpr:
		return receiver(expr.X)
	case *ast.IndexListExpr:
		return receiver(expr.X)
	case *ast.Ident:
		return expr.Name
	}
	return "?"
}
