package main

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNumbersInWords(t *testing.T) {
	require.Equal(t, "0", thousands(0))
	require.Equal(t, "999", thousands(999))
	require.Equal(t, "1,000", thousands(1000))
	require.Equal(t, "-12,345,678", thousands(-12345678))
	require.Equal(t, "-123", thousands(-123))
	require.Equal(t, "18,446,744,073,709,551,615", thousands(uint64(math.MaxUint64)))
	require.Equal(t, "1 client", count(1, "client"))
	require.Equal(t, "0 clients", count(0, "client"))
	require.Equal(t, "1 entity", count(1, "entity"))
	require.Equal(t, "2,000 entities", count(2000, "entity"))
}

func TestWrapKeepsWordsAndWidth(t *testing.T) {
	require.Equal(t, "a bc\ndef", wrap("a bc def", 5))
	require.Equal(t, "a\n\n  b c\n  d", wrap("a\n\n  b c d", 5))
	require.Equal(t, "abc\nd e", wrap("abcd e", 3))
	require.Equal(t, "é é\né", wrap("é é é", 3))
	const text = "three short words\n  and an averylongwordindeed in the second line\n\nend"
	for columns := -1; columns < 60; columns++ {
		wrapped := wrap(text, columns)
		for _, line := range strings.Split(wrapped, "\n") {
			require.LessOrEqual(t, width(line), max(columns, 1), "%d columns: %q", columns, line)
		}
		require.Equal(t, strings.Join(strings.Fields(text), ""), strings.Join(strings.Fields(wrapped), ""), "%d columns", columns)
	}
}

func TestTablesAreAligned(t *testing.T) {
	require.Equal(t, " a  long\n 1     é\n22     4", tableText([][]string{{"a", "long"}, {"1", "é"}, {"22", "4"}}))
}
