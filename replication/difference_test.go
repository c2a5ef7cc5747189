package replication

import (
	"strings"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/session"
	"github.com/stretchr/testify/require"
)

func TestFirstDifferenceOfSchemas(t *testing.T) {
	base := "arche-replicate schema 1\ncomponent P\nP.X float32\n"
	long := strings.Repeat("ä", 5000)
	for _, c := range []struct{ server, client, want string }{
		{"", "", ""},
		{base, base, ""},
		{base, strings.Replace(base, "32", "64", 1), `line 3: server has "P.X float32", client has "P.X float64"`},
		{base + "P.Y bool\n", base, `line 4: server has "P.Y bool", client has nothing`},
		{base, base + "component Q\n", `line 4: server has nothing, client has "component Q"`},
		{base, "", `line 1: server has "arche-replicate schema 1", client has nothing`},
		{base, strings.TrimSuffix(base, "\n"), `line 4: server has nothing, client has nothing`},
		{"a", "a\nb", `line 2: server has nothing, client has "b"`},
		{"a\n", "a\n\n\n\x00\"", `line 3: server has nothing, client has nothing`},
		{"a", "\x1b[31m\xff", `line 1: server has "a", client has "\x1b[31m\xff"`},
		{"a", long, `line 1: server has "a", client has "` + strings.Repeat("ä", 100) + `..."`},
		{"a", "b" + long, `line 1: server has "a", client has "b` + strings.Repeat("ä", 99) + `?..."`},
	} {
		require.Equal(t, c.want, firstDifference(c.server, c.client))
	}

	require.Nil(t, session.CompareSchemas(base, base))
	e := session.CompareSchemas(base, "arche-replicate schema 1\ncomponent Q")
	require.Equal(t, &SchemaError{Line: 2, Server: "component P", Client: "component Q"}, (*SchemaError)(e))
	require.EqualError(t, (*SchemaError)(e), `replication: the schemas differ, register the same types in the same order on both ends, with the same fields, options and tables of Tune: line 2: server has "component P", client has "component Q"`)
}

func FuzzSchemaText(f *testing.F) {
	f.Add(schemaGolden, schemaGolden)
	f.Add(schemaGolden, schemaGolden[:100])
	f.Add(schemaMoreGolden, schemaGolden)
	f.Add("a\n", "a")
	f.Add("\n\n", "\n\n\xff\n")
	f.Fuzz(func(t *testing.T, server, client string) {
		text := firstDifference(server, client)
		require.Equal(t, server == client, text == "")
		require.LessOrEqual(t, len(text), 2*4*(session.MaxLineShown+3)+80, "a quoted byte takes at most four") // \x00
		require.NotContains(t, text, "\n")
		if e := session.CompareSchemas(server, client); e != nil {
			// The oracle: split and compare line by line.
			a, b := strings.Split(server, "\n"), strings.Split(client, "\n")
			line := 0
			for line < len(a) && line < len(b) && a[line] == b[line] {
				line++
			}
			require.Equal(t, line+1, e.Line)
			at := func(lines []string) string {
				if line < len(lines) {
					return session.ShortenLine(lines[line])
				}
				return ""
			}
			require.Equal(t, at(a), e.Server)
			require.Equal(t, at(b), e.Client)
		}
	})
}
