package main

import (
	"bytes"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
)

const head = `# a comment
# rate 30
tick,entity,Position.X,Position.Y,Rotation.Q[0],Rotation.Q[1],Health.HP,Flags.Alive
uint32,uint16,"float32 range=-5:5,step=0.01",float64,[2]float32 ,,uint8,bool
`

func TestReaderReadsHeaderAndRows(t *testing.T) {
	r, err := newReader("t.csv", iotest.OneByteReader(strings.NewReader(head+
		"0,7,1.5,-2,0.25,0.5,100,true\r\n"+
		"0,8,,,,,1,\n"+
		"\"12\",7,,,,,,\n")))
	require.NoError(t, err)
	require.EqualValues(t, 30, r.rate)
	require.Len(t, r.components, 4)

	position, rotation := r.components[0], r.components[1]
	require.Equal(t, "Position", position.name)
	require.Equal(t, "range=-5:5,step=0.01", position.typ.Field(0).Tag.Get("repl"))
	_, tagged := position.typ.Field(1).Tag.Lookup("repl")
	require.False(t, tagged)
	require.Equal(t, reflect.TypeFor[float64](), position.typ.Field(1).Type)
	require.Equal(t, reflect.TypeFor[[2]float32](), rotation.typ.Field(0).Type)

	require.NoError(t, r.next())
	require.EqualValues(t, 0, r.tick)
	require.EqualValues(t, 7, r.entity)
	require.Equal(t, []bool{true, true, true, true}, r.has)
	require.EqualValues(t, 1.5, r.values[0].Elem().Field(0).Interface())
	require.EqualValues(t, -2, r.values[0].Elem().Field(1).Interface())
	require.Equal(t, [2]float32{0.25, 0.5}, r.values[1].Elem().Field(0).Interface())
	require.EqualValues(t, 100, r.values[2].Elem().Field(0).Interface())
	require.Equal(t, true, r.values[3].Elem().Field(0).Interface())

	require.NoError(t, r.next())
	require.Equal(t, []bool{false, false, true, false}, r.has)
	require.NoError(t, r.next())
	require.EqualValues(t, 12, r.tick)
	require.Equal(t, []bool{false, false, false, false}, r.has)
	require.Equal(t, io.EOF, r.next())
}

func TestRateDefaultsTo60(t *testing.T) {
	r, err := newReader("t.csv", strings.NewReader("# rate of fire\n#rate\ntick,entity,A.B\nuint32,uint32,bool\n"))
	require.NoError(t, err)
	require.EqualValues(t, 60, r.rate)
}

func TestComponentsThatLookAlikeAreDifferentTypes(t *testing.T) {
	r, err := newReader("t.csv", strings.NewReader("tick,entity,A.X,B.X\nuint32,uint32,bool,bool\n"))
	require.NoError(t, err)
	require.NotEqual(t, r.components[0].typ, r.components[1].typ)
	_, err = buildSchema(r.components)
	require.NoError(t, err)
}

func TestReaderUnderstandsZstdByItsFirstBytes(t *testing.T) {
	text := head + strings.Repeat("0,7,1.5,-2,0.25,0.5,100,true\n", 5000)
	var packed bytes.Buffer
	w, err := zstd.NewWriter(&packed)
	require.NoError(t, err)
	_, err = w.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, w.Close())

	for _, file := range [][]byte{[]byte(text), packed.Bytes()} {
		src, done, err := decompress(bytes.NewReader(file))
		require.NoError(t, err)
		got, err := io.ReadAll(src)
		require.NoError(t, err)
		require.Equal(t, text, string(got))
		done()
	}

	src, done, err := decompress(bytes.NewReader(packed.Bytes()[:packed.Len()/2]))
	require.NoError(t, err)
	defer done()
	_, err = readAll("t.csv.zst", src)
	require.ErrorContains(t, err, "t.csv.zst: line ")
	require.ErrorContains(t, err, "cannot be read: unexpected EOF")
}

// readAll reads a trace to its end and returns the number of rows.
func readAll(name string, src io.Reader) (int, error) {
	r, err := newReader(name, src)
	if err != nil {
		return 0, err
	}
	if _, err := buildSchema(r.components); err != nil {
		return 0, r.faultAt(r.typesLine, err)
	}
	for n := 0; ; n++ {
		if err := r.next(); err == io.EOF {
			return n, nil
		} else if err != nil {
			return n, err
		}
	}
}

func TestMalformedTracesAreRefusedByLineAndColumn(t *testing.T) {
	const good = "tick,entity,P.X,P.Y,Q.V[0],Q.V[1]\nuint32,uint32,float32,int8,[2]bool,\n"
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "line 1: the file ends before its column names"},
		{"only comments", "# rate 60\n", "line 2: the file ends before its column names"},
		{"no types", "tick,entity,P.X\n", "line 2: the file ends before its column types"},
		{"no rows", good, "line 3: the file ends before its first row"},
		{"rate is no number", "# x\n# rate fast\n", `line 2: a rate of "fast": must be a number of ticks per second, above 0 and at most 1e6`},
		{"rate 0", "# rate 0\n", `line 1: a rate of "0": must be a number of ticks per second, above 0 and at most 1e6`},
		{"rate NaN", "# rate NaN\n", `line 1: a rate of "NaN": must be a number of ticks per second, above 0 and at most 1e6`},

		{"first column", "time,entity,P.X\n", "line 1: column 1 must be named tick; a trace starts with tick,entity and goes on with columns like Position.X"},
		{"second column", "# x\ntick\n", "line 2: column 2 must be named entity; a trace starts with tick,entity and goes on with columns like Position.X"},
		{"no component", "tick,entity\n", "line 1: there is no component; after tick,entity come columns like Position.X"},
		{"no dot", "tick,entity,X\n", "line 1, column X: a column is named Component.Field or Component.Field[i], with Go names, the field's exported"},
		{"two dots", "tick,entity,P.X.Y\n", "line 1, column P.X.Y: a column is named Component.Field or Component.Field[i], with Go names, the field's exported"},
		{"unexported", "tick,entity,P.x\n", "line 1, column P.x: a column is named Component.Field or Component.Field[i], with Go names, the field's exported"},
		{"bad index", "tick,entity,P.X[01]\n", "line 1, column P.X[01]: a column is named Component.Field or Component.Field[i], with Go names, the field's exported"},
		{"open index", "tick,entity,P.X[1\n", "line 1, column P.X[1: a column is named Component.Field or Component.Field[i], with Go names, the field's exported"},
		{"twice", "tick,entity,P.X,P.X\n", "line 1, column P.X: the field X of P is there already"},
		{"array twice", "tick,entity,P.X[0],P.X[0]\n", "line 1, column P.X[0]: the field X of P is there already"},
		{"split component", "tick,entity,P.X,Q.X,P.Y\n", "line 1, column P.Y: the columns of P must stand together"},
		{"array from 1", "tick,entity,P.X[1]\n", "line 1, column P.X[1]: the elements of an array must stand together, in order from [0]"},
		{"array out of order", "tick,entity,P.X[0],P.X[2]\n", "line 1, column P.X[2]: the elements of an array must stand together, in order from [0]"},
		{"split array", "tick,entity,P.X[0],P.Y,P.X[1]\n", "line 1, column P.X[1]: the elements of an array must stand together, in order from [0]"},
		{"array after scalar", "tick,entity,P.X,P.X[1]\n", "line 1, column P.X[1]: the elements of an array must stand together, in order from [0]"},

		{"tick type", "tick,entity,P.X\nint32,uint32,bool\n", `line 2, column tick: "int32" is not an unsigned integer type, such as uint32`},
		{"entity type", "tick,entity,P.X\nuint32,string,bool\n", `line 2, column entity: "string" is not an unsigned integer type, such as uint32`},
		{"unknown type", "tick,entity,P.X\nuint32,uint32,string\n", `line 2, column P.X: "string" is not a type that a trace can hold; those are bool, int8 to int64, uint8 to uint64, float32, float64, and arrays of them such as [4]float32`},
		{"no type", "tick,entity,P.X\nuint32,uint32,\n", `line 2, column P.X: "" is not a type that a trace can hold; those are bool, int8 to int64, uint8 to uint64, float32, float64, and arrays of them such as [4]float32`},
		{"unclosed array", "tick,entity,P.X[0]\nuint32,uint32,[1float32\n", `line 2, column P.X[0]: "[1float32" is not a type that a trace can hold; those are bool, int8 to int64, uint8 to uint64, float32, float64, and arrays of them such as [4]float32`},
		{"array at scalar", "tick,entity,P.X\nuint32,uint32,[1]bool\n", "line 2, column P.X: [1]bool is an array, so that the column must be named P.X[0]"},
		{"scalar at array", "tick,entity,P.X[0]\nuint32,uint32,bool\n", "line 2, column P.X[0]: bool is not an array, but the column is named like an element of one"},
		{"array length", "tick,entity,P.X[0],P.X[1]\nuint32,uint32,[3]bool,\n", "line 2, column P.X[0]: [3]bool has 3 elements, but there are columns for 2"},
		{"type at element", "tick,entity,P.X[0],P.X[1]\nuint32,uint32,[2]bool,bool\n", `line 2, column P.X[1]: the type of an array stands at element 0 alone, but here is "bool"`},
		{"missing type", "tick,entity,P.X,P.Y\nuint32,uint32,bool\n", "line 2, column P.Y: missing; there are 3 of 4 cells"},
		{"extra type", "tick,entity,P.X\nuint32,uint32,bool,bool\n", "line 2: 4 cells, but only 3 columns, of which P.X is the last"},
		{"unknown tag", "tick,entity,P.X,P.Y\nuint32,uint32,bool,float32 rnage=0:1\n", "line 2, column P.Y: P.Y: unknown key"},
		{"tag of another type", "tick,entity,P.Q[0],P.Q[1]\nuint32,uint32,\"[2]float32 quat,bits=9\",\n", "line 2, column P.Q[0]: P.Q"},

		{"tick is no number", good + "x,1,1,1,true,true\n", `line 3, column tick: "x" is not a uint32`},
		{"tick too large", good + "4294967296,1,1,1,true,true\n", `line 3, column tick: "4294967296" does not fit a uint32`},
		{"negative tick", good + "-1,1,1,1,true,true\n", `line 3, column tick: "-1" is not a uint32`},
		{"entity is no number", good + "0,,1,1,true,true\n", `line 3, column entity: "" is not a uint32`},
		{"unsorted", good + "3,1,1,1,true,true\n3,2,1,1,true,true\n2,1,1,1,true,true\n", "line 5, column tick: rows must be sorted by tick, but 2 comes after 3"},
		{"cell", good + "0,1,1,1,true,true\n1,1,abc,1,true,true\n", `line 4, column P.X: "abc" is not a float32`},
		{"cell after comments", "#\n#\n#\n" + good + "0,1,1,200,true,true\n", `line 6, column P.Y: "200" does not fit an int8`},
		{"array cell", good + "0,1,1,1,true,yes\n", `line 3, column Q.V[1]: "yes" is not a bool: write true or false`},
		{"hole", good + "0,1,1,,true,true\n", "line 3, column P.Y: empty, but P.X is not; of a component, all cells are empty or none is"},
		{"hole in array", good + "0,1,,,,true\n", "line 3, column Q.V[0]: empty, but Q.V[1] is not; of a component, all cells are empty or none is"},
		{"short row", good + "0,1,1,1,true\n", "line 3, column Q.V[1]: missing; there are 5 of 6 cells"},
		{"long row", good + "0,1,1,1,true,true,\n", "line 3: 7 cells, but only 6 columns, of which Q.V[1] is the last"},
		{"blank line", good + "\n0,1,1,1,true,true\n", "line 3: a blank line, or one that a quoted cell broke"},
		{"comment among rows", good + "0,1,1,1,true,true\n# x\n", "line 4, column entity: missing; there are 1 of 6 cells"},
		{"bare quote", good + "0,1,1\",1,true,true\n", `line 3, column P.X: bare " in non-quoted-field`},
		{"open quote", good + "0,1,1,1,\"true,true\n", `line 3, column Q.V[0]: extraneous or missing " in quoted-field`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := readAll("t.csv", strings.NewReader(c.text))
			require.Error(t, err)
			require.True(t, strings.HasPrefix(err.Error(), "t.csv: "+c.want), "%s", err)
			require.NotContains(t, err.Error(), "\n")
		})
	}
}

func TestReaderDoesNotAllocateMuchPerRow(t *testing.T) {
	r, err := newReader("t.csv", strings.NewReader(head+strings.Repeat("0,7,1.5,-2,0.25,0.5,100,true\n", 2000)))
	require.NoError(t, err)
	require.LessOrEqual(t, testing.AllocsPerRun(1000, func() {
		if err := r.next(); err != nil {
			t.Fatal(err)
		}
	}), 2.0)
}

func FuzzReaderNeverPanics(f *testing.F) {
	f.Add(head + "0,7,1.5,-2,0.25,0.5,100,true\n")
	f.Add("tick,entity,P.X[0],P.X[1]\nuint32,uint32,[2]bool,\n0,0,true,false\n0,0,,\n")
	f.Fuzz(func(t *testing.T, text string) {
		_, err := readAll("t.csv", strings.NewReader(text))
		if err != nil && !strings.HasPrefix(err.Error(), "t.csv: ") {
			t.Fatalf("not a sentence about the file: %v", err)
		}
	})
}
