package main

import (
	"bufio"
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A mutant is a fault of one line.
type mutant struct {
	area   string
	dir    string // of the package, from the root of the module
	in     string // the function, method or type that the line stands in
	more   string // further tests: a package, and a pattern after a colon
	line   int    // in mutants.txt
	old    string
	new    string
	reason string // why nobody could observe it; empty: somebody can
}

func (m *mutant) String() string { return fmt.Sprintf("%s %s %s", m.area, filepath.Base(m.dir), m.in) }

// parseMutants reads mutants.txt.
func parseMutants(text []byte) (list []*mutant, err error) {
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		var m *mutant
		if len(list) > 0 {
			m = list[len(list)-1]
		}
		mark, rest, _ := strings.Cut(line, " ")
		rest = strings.TrimSpace(rest)
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case mark == "-" && m != nil && m.old == "":
			m.old = rest
		case mark == "+" && m != nil && m.old != "" && m.new == "":
			m.new = rest
		case mark == "=" && m != nil && m.new != "":
			m.reason = rest
		default:
			words := strings.Fields(line)
			if m != nil && m.new == "" || len(words) < 3 || len(words) > 4 {
				return nil, fmt.Errorf("mutants.txt:%d: %q belongs to no fault, and begins none", n, line)
			}
			m = &mutant{area: words[0], dir: words[1], in: words[2], line: n}
			if len(words) == 4 {
				m.more = words[3]
			}
			if inside := filepath.Join("replication", "internal", m.dir); isDir(inside) {
				m.dir = inside
			}
			list = append(list, m)
		}
	}
	return list, lines.Err()
}

func isDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// plant returns the file that the fault is in and its text with the fault.
func (m *mutant) plant() (file string, text []byte, err error) {
	found := 0
	entries, err := os.ReadDir(m.dir)
	if err != nil {
		return "", nil, err
	}
	for _, e := range entries {
		if !isSource(e) {
			continue
		}
		name := filepath.Join(m.dir, e.Name())
		source, err := os.ReadFile(name)
		if err != nil {
			return "", nil, err
		}
		from, to, err := span(name, source, m.in)
		if err != nil {
			return "", nil, err
		}
		for at := from; at < to; {
			end := at + bytes.IndexByte(append(source[at:to:to], '\n'), '\n')
			if code := bytes.TrimSpace(source[at:end]); string(code) == m.old {
				found++
				begin := at + bytes.Index(source[at:end], code)
				file, text = name, bytes.Join([][]byte{source[:begin], []byte(m.new), source[begin+len(code):]}, nil)
			}
			at = end + 1
		}
	}
	if found != 1 {
		return "", nil, fmt.Errorf("mutants.txt:%d: %s has the line %q %d times", m.line, m, m.old, found)
	}
	return file, text, nil
}

func isSource(e fs.DirEntry) bool {
	return strings.HasSuffix(e.Name(), ".go") && !strings.HasSuffix(e.Name(), "_test.go")
}

// span returns where a function, a method "Type.Method" or another declaration stands in a file; 0, 0 if it doesn't.
func span(name string, source []byte, in string) (from, to int, err error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, source, parser.SkipObjectResolution)
	if err != nil {
		return 0, 0, err
	}
	for _, decl := range file.Decls {
		if declares(decl, in) {
			return files.Position(decl.Pos()).Offset, files.Position(decl.End()).Offset, nil
		}
	}
	return 0, 0, nil
}

func declares(decl ast.Decl, in string) bool {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		name := d.Name.Name
		if d.Recv != nil {
			name = receiver(d.Recv.List[0].Type) + "." + name
		}
		return name == in
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				if s.Name.Name == in {
					return true
				}
			case *ast.ValueSpec:
				for _, id := range s.Names {
					if id.Name == in {
						return true
					}
				}
			}
		}
	}
	return false
}

func receiver(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.StarExpr:
		return receiver(t.X)
	case *ast.IndexExpr:
		return receiver(t.X)
	case *ast.IndexListExpr:
		return receiver(t.X)
	case *ast.Ident:
		return t.Name
	}
	return ""
}
