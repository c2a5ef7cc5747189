//go:build !js && !wasip1

package archcheck

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// unusedNames returns the exported names of internal packages that no other package uses: package.Name,
// package.Type.Method, package.Type.Field.
func (c *checker) unusedNames() []string {
	used := c.usedElsewhere()
	var names []string
	for _, p := range c.pkgs {
		if !p.internal() || p.onlyForTests() {
			continue
		}
		scope := p.types.Scope()
		for _, name := range scope.Names() {
			object := scope.Lookup(name)
			if object.Exported() && !used[object.Pos()] {
				names = append(names, p.name()+"."+name)
			}
			kind, ok := object.(*types.TypeName)
			if !ok || kind.IsAlias() {
				continue
			}
			named := kind.Type().(*types.Named)
			for method := range named.Methods() {
				if method.Exported() && !used[method.Pos()] && !c.forInterface(p, named, method.Name(), used) {
					names = append(names, p.name()+"."+name+"."+method.Name())
				}
			}
			if asks, ok := named.Underlying().(*types.Interface); ok {
				for method := range asks.ExplicitMethods() {
					if method.Exported() && !used[method.Pos()] && !c.implementedElsewhere(p, asks) {
						names = append(names, p.name()+"."+name+"."+method.Name())
					}
				}
			}
			fields, ok := named.Underlying().(*types.Struct)
			if !ok {
				continue
			}
			for field := range fields.Fields() {
				// An embedded field is named by its type.
				if field.Exported() && !field.Embedded() && !used[field.Pos()] {
					names = append(names, p.name()+"."+name+"."+field.Name())
				}
			}
		}
	}
	slices.Sort(names)
	return names
}

// usedElsewhere returns the positions of declarations that a package other than their own uses.
func (c *checker) usedElsewhere() map[token.Pos]bool {
	used := map[token.Pos]bool{}
	for _, user := range c.users {
		use := func(object types.Object) {
			if object.Pkg() != nil && strings.TrimSuffix(object.Pkg().Path(), "_test") != module+"/"+user.dir {
				used[object.Pos()] = true
			}
		}
		for _, object := range user.info.Uses {
			use(object)
		}
		for expr, value := range user.info.Types {
			for named := range namedIn(value.Type) {
				use(named.Obj()) // a value has the type, even if no code names it
			}
			// A composite literal without keys and a conversion name no field, but use all.
			switch expr := expr.(type) {
			case *ast.CompositeLit:
				if len(expr.Elts) > 0 {
					if _, keyed := expr.Elts[0].(*ast.KeyValueExpr); !keyed {
						useFields(value.Type, use)
					}
				}
			case *ast.CallExpr:
				if user.info.Types[expr.Fun].IsType() {
					useFields(value.Type, use)
					useFields(user.info.Types[expr.Args[0]].Type, use)
				}
			}
		}
	}
	return used
}

// useFields marks the fields of a struct as used.
func useFields(t types.Type, use func(types.Object)) {
	if fields, ok := t.Underlying().(*types.Struct); ok {
		for field := range fields.Fields() {
			use(field)
		}
	}
}

// namedIn returns the named types that a type is made of, without their definitions.
func namedIn(t types.Type) map[*types.Named]bool {
	found := map[*types.Named]bool{}
	var visit func(types.Type)
	visit = func(t types.Type) {
		switch t := t.(type) {
		case *types.Named:
			found[t.Origin()] = true
			for argument := range t.TypeArgs().Types() {
				visit(argument)
			}
		case *types.Pointer:
			visit(t.Elem())
		case *types.Slice:
			visit(t.Elem())
		case *types.Array:
			visit(t.Elem())
		case *types.Map:
			visit(t.Key())
			visit(t.Elem())
		case *types.Signature:
			for value := range t.Params().Variables() {
				visit(value.Type())
			}
			for value := range t.Results().Variables() {
				visit(value.Type())
			}
		}
	}
	visit(t)
	return found
}

// forInterface reports whether a type has a method for an interface: error, fmt.Stringer, one of
// another package that is under replication or imported, or one of its own package whose method
// another package uses.
func (c *checker) forInterface(p *pkg, named *types.Named, method string, used map[token.Pos]bool) bool {
	if method == "String" || method == "Error" {
		return true
	}
	others := p.types.Imports()
	for _, other := range c.pkgs {
		others = append(others[:len(others):len(others)], other.types)
	}
	for _, other := range others {
		for _, name := range other.Scope().Names() {
			asks, ok := other.Scope().Lookup(name).Type().Underlying().(*types.Interface)
			if !ok || !implements(named, asks) {
				continue
			}
			asked, _, _ := types.LookupFieldOrMethod(asks, false, nil, method)
			if asked != nil && (other != p.types || used[asked.Pos()]) {
				return true
			}
		}
	}
	return false
}

// implementedElsewhere reports whether a type of another package than p implements the interface.
func (c *checker) implementedElsewhere(p *pkg, asks *types.Interface) bool {
	for _, other := range c.pkgs {
		if other == p {
			continue
		}
		for _, name := range other.types.Scope().Names() {
			if implements(other.types.Scope().Lookup(name).Type(), asks) {
				return true
			}
		}
	}
	return false
}

func implements(t types.Type, asks *types.Interface) bool {
	return types.Implements(t, asks) || types.Implements(types.NewPointer(t), asks)
}
