//go:build !js && !wasip1

// Not built where there is no go command to run.

package replication_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/arche-replicate/arche-replicate/replication/transport"
	"github.com/arche-replicate/arche-replicate/replication/transport/quic"
	"github.com/arche-replicate/arche-replicate/replication/transport/udp"
	"github.com/arche-replicate/arche-replicate/replication/transport/web"
)

// The guide is tested like code: its Go blocks compile, its quick start prints the output it shows,
// its links point to files.

const docsRoot = ".."

// docPages returns the README, the change log, CONTRIBUTING and the pages of the guide.
func docPages(t *testing.T) []string {
	pages, err := filepath.Glob(filepath.Join(docsRoot, "docs", "*.md"))
	require.NoError(t, err)
	require.NotEmpty(t, pages)
	for _, page := range []string{"README.md", "CHANGELOG.md", "CONTRIBUTING.md"} {
		pages = append(pages, filepath.Join(docsRoot, page))
	}
	return pages
}

// A docBlock is a fenced block of a page.
type docBlock struct {
	page     string
	line     int // of the first line inside
	language string
	text     string
}

func (b *docBlock) String() string { return fmt.Sprintf("%s:%d", b.page, b.line) }

// docBlocks returns the fenced blocks of a page, and the remaining text.
func docBlocks(t *testing.T, page string) (blocks []docBlock, prose string) {
	data, err := os.ReadFile(page)
	require.NoError(t, err)
	var open *docBlock
	var rest strings.Builder
	for i, line := range strings.Split(string(data), "\n") {
		fence, isFence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case isFence && open == nil:
			open = &docBlock{page: page, line: i + 2, language: fence}
		case isFence:
			blocks = append(blocks, *open)
			open = nil
		case open != nil:
			open.text += line + "\n"
		default:
			rest.WriteString(line + "\n")
		}
	}
	require.Nil(t, open, "%s: a fence is not closed", page)
	return blocks, rest.String()
}

// docImports are the packages that fragments may use without importing them.
var docImports = []string{
	"bytes", "errors", "flag", "fmt", "log", "maps", "math", "net", "net/http", "net/netip", "os", "slices", "testing", "time",
	"github.com/mlange-42/arche/ecs",
	"github.com/arche-replicate/arche-replicate/replication",
	"github.com/arche-replicate/arche-replicate/replication/netsim",
	"github.com/arche-replicate/arche-replicate/replication/interpolation",
	"github.com/arche-replicate/arche-replicate/replication/predict",
	"github.com/arche-replicate/arche-replicate/replication/rewind",
	"github.com/arche-replicate/arche-replicate/replication/inspect",
	"github.com/arche-replicate/arche-replicate/replication/loop",
	"github.com/arche-replicate/arche-replicate/replication/recording",
	"github.com/arche-replicate/arche-replicate/replication/transport/udp",
	"github.com/arche-replicate/arche-replicate/replication/transport/quic",
	"github.com/arche-replicate/arche-replicate/replication/transport/web",
}

// docPrelude declares the names that fragments may use. A fragment's own declarations hide them.
const docPrelude = `
var (
	world, clientWorld ecs.World
	schema *replication.Schema
	server *replication.Server
	peer   *replication.Peer
	client *replication.Client
	link   *netsim.Link
	packet []byte
	entity ecs.Entity
	send   func(packet []byte) error
	now, last time.Time // of this frame and the one before
	shown  *interpolation.Interpolation
	dt     time.Duration
	drawAt func(e ecs.Entity, x, y float32)
	model  *predict.Model[Drive]
	predictor *predict.Predictor
)

type Drive struct {
	X, Y int8 ` + "`repl:\"range=-1:1\"`" + `
	Fire bool
}

type Position struct {
	X, Y float32 ` + "`repl:\"range=-1000:1000,step=0.01\"`" + `
}
`

// source returns the block as a Go file, and whether it already was a complete one. A fragment is
// either declarations or statements.
func (b *docBlock) source() (text string, isFile bool) {
	at := fmt.Sprintf("//line %s:%d\n", filepath.ToSlash(b.page), b.line)
	if strings.HasPrefix(b.text, "package ") {
		return at + b.text, true
	}
	var head strings.Builder
	head.WriteString("package doc\nimport (\n")
	for _, path := range docImports {
		fmt.Fprintf(&head, "%q\n", path)
	}
	head.WriteString(")\n")
	declarations := head.String() + at + b.text
	if _, err := parser.ParseFile(token.NewFileSet(), "", declarations, parser.SkipObjectResolution); err == nil {
		return declarations, false
	}
	return head.String() + "func _() {\n" + at + b.text + "\n}\n", false
}

func TestGoBlocksOfTheGuideCompile(t *testing.T) {
	fset := token.NewFileSet()
	imported := replicationtest.Compiled(t, fset, docsRoot, docImports)
	blocks := 0
	for _, page := range docPages(t) {
		all, _ := docBlocks(t, page)
		for i := range all {
			if all[i].language == "go" {
				blocks++
				require.NoError(t, checkBlock(fset, imported, &all[i]))
			}
		}
	}
	require.Greater(t, blocks, 10, "the guide has examples")

	// The check itself can fail.
	wrong := docBlock{page: "wrong.md", line: 7, language: "go", text: "server.Replicate(1)\n"}
	require.ErrorContains(t, checkBlock(fset, imported, &wrong), "wrong.md:7")
}

// checkBlock returns the compiler's error for a block. Fragments may leave names unused.
func checkBlock(fset *token.FileSet, imported types.Importer, b *docBlock) error {
	text, isFile := b.source()
	file, err := parser.ParseFile(fset, b.String(), text, parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("%s: %w", b, err)
	}
	files := []*ast.File{file}
	if !isFile {
		prelude := "package doc\nimport (\n\"time\"\n\"github.com/mlange-42/arche/ecs\"\n" +
			"\"github.com/arche-replicate/arche-replicate/replication\"\n" +
			"\"github.com/arche-replicate/arche-replicate/replication/netsim\"\n" +
			"\"github.com/arche-replicate/arche-replicate/replication/interpolation\"\n" +
			"\"github.com/arche-replicate/arche-replicate/replication/predict\"\n)\n"
		for _, line := range strings.Split(docPrelude, "\n\n") {
			if !declaresAgain(file, line) {
				prelude += line + "\n"
			}
		}
		p, err := parser.ParseFile(fset, "prelude.go", prelude, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files = append(files, p)
	}
	var found error
	config := types.Config{Importer: imported, Error: func(err error) {
		var e types.Error
		if found == nil && (isFile || !errors.As(err, &e) || !e.Soft) {
			found = fmt.Errorf("%s: %w", b, err)
		}
	}}
	_, _ = config.Check("doc", fset, files, nil) // its error is the first one, soft or not
	return found
}

// declaresAgain reports whether a file declares the same type as a declaration of the prelude.
func declaresAgain(file *ast.File, declaration string) bool {
	name, isType := strings.CutPrefix(strings.TrimSpace(declaration), "type ")
	if !isType {
		return false
	}
	name, _, _ = strings.Cut(name, " ")
	for _, d := range file.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.TYPE {
			for _, s := range g.Specs {
				if s.(*ast.TypeSpec).Name.Name == name {
					return true
				}
			}
		}
	}
	return false
}

// The quick start is the README's first Go block; the block after it shows its output.
func TestQuickStartPrintsTheOutputInTheReadme(t *testing.T) {
	t.Parallel()
	blocks, _ := docBlocks(t, filepath.Join(docsRoot, "README.md"))
	i := slices.IndexFunc(blocks, func(b docBlock) bool { return b.language == "go" })
	require.GreaterOrEqual(t, i, 0)
	require.Less(t, i+1, len(blocks))
	program := filepath.Join(t.TempDir(), "main.go")
	require.NoError(t, os.WriteFile(program, []byte(blocks[i].text), 0o600))
	cmd := exec.Command("go", "run", program)
	cmd.Dir = docsRoot // the module with its imports
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Equal(t, blocks[i+1].text, string(out))
}

// TestTheGamesBuild: the files of the pages that show complete games are programs, at both ends.
func TestTheGamesBuild(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds four programs")
	}
	browser := []string{"GOOS=js", "GOARCH=wasm"}
	for _, game := range []struct {
		page    string
		files   []string
		ends    [][]int // which of the files are the program of an end
		clients []string
	}{
		{"browser.md", []string{"game.go", "server.go", "client.go"}, [][]int{{0, 1}, {0, 2}}, browser},
		{"game.md", []string{"game.go", "server.go", "client.go", "tank.go"}, [][]int{{0, 1, 3}, {0, 2, 3}}, nil},
	} {
		t.Run(game.page, func(t *testing.T) {
			t.Parallel()
			blocks, _ := docBlocks(t, filepath.Join(docsRoot, "docs", game.page))
			blocks = slices.DeleteFunc(blocks, func(b docBlock) bool { return b.language != "golang" })
			require.Len(t, blocks, len(game.files))
			dir := t.TempDir()
			for i, name := range game.files {
				require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(blocks[i].text), 0o600))
			}
			for i, env := range [][]string{nil, game.clients} {
				args := []string{"build", "-o", os.DevNull}
				for _, n := range game.ends[i] {
					args = append(args, filepath.Join(dir, game.files[n]))
				}
				cmd := exec.Command("go", args...)
				cmd.Dir, cmd.Env = docsRoot, append(os.Environ(), env...)
				out, err := cmd.CombinedOutput()
				require.NoError(t, err, string(out))
			}
		})
	}
}

var docLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)

func TestGuideLinksPointToFiles(t *testing.T) {
	links := 0
	for _, page := range docPages(t) {
		_, prose := docBlocks(t, page)
		for _, m := range docLink.FindAllStringSubmatch(prose, -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			links++
			path := page
			if target != "" {
				path = filepath.Join(filepath.Dir(page), filepath.FromSlash(target))
			}
			_, err := os.Stat(path)
			require.NoError(t, err, "%s links to %s", page, m[1])
			if anchor != "" {
				require.Contains(t, docAnchors(t, path), anchor, "%s links to %s", page, m[1])
			}
		}
	}
	require.Greater(t, links, 10)
}

var notInAnchors = regexp.MustCompile(`[^\p{L}\p{N}\- _]`)

// docAnchors returns the anchors of a page's headings, as common renderers make them.
func docAnchors(t *testing.T, page string) (anchors []string) {
	_, prose := docBlocks(t, page)
	for _, line := range strings.Split(prose, "\n") {
		if heading := strings.TrimLeft(line, "#"); heading != line {
			text := notInAnchors.ReplaceAllString(strings.ToLower(strings.TrimSpace(heading)), "")
			anchors = append(anchors, strings.ReplaceAll(text, " ", "-"))
		}
	}
	return anchors
}

// TestLinksOfDocCommentsPointToNames: every link in brackets in a doc comment of the package that looks like one of its
// names is one.
func TestLinksOfDocCommentsPointToNames(t *testing.T) {
	names, files := map[string]bool{}, token.NewFileSet()
	paths, err := filepath.Glob("*.go")
	require.NoError(t, err)
	var parsed []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(files, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		require.NoError(t, err)
		parsed = append(parsed, file)
	}
	pkg, err := doc.NewFromFiles(files, parsed, "replication", doc.PreserveAST)
	require.NoError(t, err)
	add := func(values []*doc.Value, funcs []*doc.Func, of string) {
		for _, v := range values {
			for _, name := range v.Names {
				names[name] = true
			}
		}
		for _, f := range funcs {
			names[of+f.Name] = true
		}
	}
	add(append(pkg.Consts, pkg.Vars...), pkg.Funcs, "")
	for _, typ := range pkg.Types {
		names[typ.Name] = true
		add(append(typ.Consts, typ.Vars...), typ.Funcs, "")
		add(nil, typ.Methods, typ.Name+".")
		for _, spec := range typ.Decl.Specs {
			if fields, ok := spec.(*ast.TypeSpec).Type.(*ast.StructType); ok {
				for _, field := range fields.Fields.List {
					for _, name := range field.Names {
						names[typ.Name+"."+name.Name] = true
					}
				}
			}
		}
	}
	links := 0
	for _, file := range parsed {
		for _, comment := range file.Comments {
			for _, link := range regexp.MustCompile(`(?:^|[\s(])\[\*?([A-Z]\w*(?:\.\w+)?)\]`).FindAllStringSubmatch(comment.Text(), -1) {
				links++
				require.True(t, names[link[1]], "%v: %s", files.Position(comment.Pos()), link[0])
			}
		}
	}
	require.Greater(t, links, 200)
}

// The tag keys are those that ParseTag distinguishes.
func TestGuideNamesEveryTagKey(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "internal/field/tag.go", nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	var keys []string
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); !ok || f.Name.Name != "ParseTag" {
			continue
		}
		ast.Inspect(d, func(n ast.Node) bool {
			clause, ok := n.(*ast.CaseClause)
			if !ok {
				return true
			}
			for _, e := range clause.List {
				key, err := strconv.Unquote(e.(*ast.BasicLit).Value)
				require.NoError(t, err)
				keys = append(keys, key)
			}
			return true
		})
	}
	require.Contains(t, keys, "range")
	require.Greater(t, len(keys), 8)
	_, prose := docBlocks(t, filepath.Join(docsRoot, "docs", "registering-components.md"))
	for _, key := range keys {
		named := regexp.MustCompile("`([^`]*,)?" + regexp.QuoteMeta(key) + "([=,][^`]*)?`")
		require.Regexp(t, named, prose, "the tag key %q is not explained", key)
	}
}

// TestGuideNamesEverySocketCounter does what TestGuideNamesEveryCounter does for transports.
func TestGuideNamesEverySocketCounter(t *testing.T) {
	_, prose := docBlocks(t, filepath.Join(docsRoot, "docs", "observability.md"))
	_, section, found := strings.Cut(prose, "\n## Sockets\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	for _, stats := range []any{transport.Stats{}, transport.ConnStats{}, udp.ListenerStats{}, udp.ConnStats{}, quic.ListenerStats{}, web.HandlerStats{}} {
		typ := reflect.TypeOf(stats)
		for i := range typ.NumField() {
			if f := typ.Field(i); !f.Anonymous {
				require.Contains(t, section, "`"+f.Name+"`", "%v.%s is not explained", typ, f.Name)
			}
		}
	}
}

func TestGuideNamesEveryCounter(t *testing.T) {
	_, prose := docBlocks(t, filepath.Join(docsRoot, "docs", "observability.md"))
	for _, stats := range []any{replication.ServerStats{}, replication.PeerStats{}, replication.ClientStats{}} {
		typ := reflect.TypeOf(stats)
		_, section, found := strings.Cut(prose, "\n## "+typ.Name()+"\n")
		require.True(t, found, "no section %s", typ.Name())
		section, _, _ = strings.Cut(section, "\n## ")
		for i := range typ.NumField() {
			require.Contains(t, section, "`"+typ.Field(i).Name+"`", "%s.%s is not explained", typ.Name(), typ.Field(i).Name)
		}
	}
}
