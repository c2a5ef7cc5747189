//go:build !js && !wasip1

// Not built where there are no files.

package replication_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
)

// TestGoldenJoins compares hellos with join data, and the answers of a server that refuses them, with
// docs/vectors/join.txt.
func TestGoldenJoins(t *testing.T) {
	var out strings.Builder
	for _, data := range []string{"", "Ann", "a ticket of 23 bytes in", "a ticket of 24 bytes: it", strings.Repeat("ticket ", 40)} {
		schema := replication.NewSchema()
		replication.Register[vectorPosition](schema, replication.Name("Position"))
		world, mirror := ecs.NewWorld(), ecs.NewWorld()
		server := replication.NewServer(&world, schema, replication.WithSeed(1))
		server.OnJoin(func(_ *replication.Peer, got []byte) error {
			require.Equal(t, data, string(got))
			return errors.New("nobody may join, whatever they write in how many words, however many they are, and in whatever language: " +
				"there is no room for that here")
		})
		var disconnect []byte
		peer := server.Connect(func(p []byte) error { disconnect = bytes.Clone(p); return nil })
		client := replication.NewClientWith(&mirror, schema, func(p []byte) error {
			n := binary.LittleEndian
			fmt.Fprintf(&out, "hello %x\n  version %d\n  fingerprint %#x\n  nonce %d\n  offset %d\n  session %d\n  codings %d\n  slots %d\n  data %x\n",
				p, p[5], n.Uint64(p[6:]), n.Uint64(p[14:]), n.Uint32(p[22:]), n.Uint64(p[26:]), p[34], n.Uint32(p[35:]), p[41:][:n.Uint16(p[39:])])
			return peer.Receive(p)
		}, replication.WithSeed(2), replication.WithJoinData([]byte(data)))
		require.NoError(t, client.Apply())
		require.NoError(t, client.Receive(disconnect))
		var gone *replication.DisconnectError
		require.ErrorAs(t, client.Apply(), &gone)
		fmt.Fprintf(&out, "disconnect %x\n  code %d\n  nonce %d\n  text %s\n", disconnect, gone.Reason.Code, binary.LittleEndian.Uint64(disconnect[6:]), gone.Reason.Text)
	}
	file := filepath.Join(docsRoot, "docs", "vectors", "join.txt")
	if os.Getenv("GOLDEN") == "update" {
		require.NoError(t, os.WriteFile(file, []byte(out.String()), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), out.String())
}
