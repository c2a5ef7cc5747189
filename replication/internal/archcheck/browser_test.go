package archcheck

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestClientsInBrowsersAreSmall fails if a client in a browser links packages that are large and of no use there.
// Compressed, the first two would add 0.1 and 0.06 MB to 1.5, net/http 0.6. docs/benchmarks measures all of it.
func TestClientsInBrowsersAreSmall(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps",
		"./replication", "./replication/interpolation", "./replication/transport/web", "./replication/inspect")
	cmd.Dir = "../../.."
	cmd.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	deps := strings.Fields(string(out))
	if !slices.Contains(deps, module+"/replication/interpolation") || !slices.Contains(deps, "syscall/js") {
		t.Fatalf("go list does not name what it should: %v", deps)
	}
	for _, dep := range deps {
		net := dep == "net" || strings.HasPrefix(dep, "net/") && dep != "net/netip"
		sockets := strings.Contains(dep, "quic-go") || strings.Contains(dep, "websocket")
		if net || sockets || dep == "regexp" || strings.HasPrefix(dep, "crypto") {
			t.Errorf("Clients in browsers import %s.", dep)
		}
	}
}

// TestInspectingNeedsNoOtherModule: an application that imports package inspect, and with it replication and
// interpolation, links the standard library and Arche.
func TestInspectingNeedsNoOtherModule(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", "./replication/inspect")
	cmd.Dir = "../../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	modules := strings.Fields(string(out))
	slices.Sort(modules)
	want := []string{module, "github.com/mlange-42/arche"}
	if got := slices.Compact(modules); !slices.Equal(got, want) {
		t.Errorf("Package inspect needs the modules %v; it may need %v only.", got, want)
	}
}
