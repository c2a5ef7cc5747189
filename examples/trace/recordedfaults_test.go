package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/recording"
)

// TestRecordingsThatCannotBeReplayed are refused in a sentence.
func TestRecordingsThatCannotBeReplayed(t *testing.T) {
	file, _ := allKindsRecording(t, 30, false)
	other := bytes.Clone(file)
	other[8]++ // the version
	empty := func() []byte {
		w := ecs.NewWorld()
		var b bytes.Buffer
		server := replication.NewServer(&w, allKinds(false))
		r := recording.NewRecorder(server, &b)
		for range 3 {
			server.Replicate()
		}
		require.NoError(t, r.Close())
		return b.Bytes()
	}()
	client := func() []byte {
		w := ecs.NewWorld()
		var b bytes.Buffer
		require.NoError(t, recording.NewClientRecorder(replication.NewClient(&w, allKinds(false)), &b).Close())
		return b.Bytes()
	}()
	embedded := func() []byte {
		w, schema := ecs.NewWorld(), replication.NewSchema()
		replication.Register[recEmbedding](schema)
		var b bytes.Buffer
		require.NoError(t, recording.NewRecorder(replication.NewServer(&w, schema), &b).Close())
		return b.Bytes()
	}()
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"embeds what is unexported", embedded, `types can't be made from the schema's text: line 3, "recEmbedding.recMove.X int8 range=-1:1": "recMove" is no exported name`},
		{"another version", other, "the file's format is version 2, and this release reads version 1"},
		{"cut", file[:100], "the file's header can't be read: the file is cut off in the middle of a record"},
		{"nothing", []byte("ARCHEREC"), "nothing was recorded"},
		{"no entity", empty, "no entity was recorded"},
		{"of a client that was never accepted", client, "no entity was recorded"},
		{"no recording", []byte("ARCHERY,entity"), "line 1: column 1 must be named tick"},
	} {
		path := writeRecording(t, c.data)
		for _, mode := range []string{"-json", "-codes", "-advice", "-tune", "-render=" + filepath.Join(t.TempDir(), "x.svg")} {
			code, stdout, stderr := invoke(t, "", mode, path)
			require.Equal(t, exitUsage, code, c.name)
			require.Contains(t, stderr, "trace: "+path+": ")
			require.Contains(t, stderr, c.want, c.name)
			require.NotContains(t, stderr, "recording: ")
			if mode != "-codes" { // which has printed the head
				require.Empty(t, stdout)
			}
		}
	}
}

// TestADamagedRecordingIsReplayedUpToTheDamage.
func TestADamagedRecordingIsReplayedUpToTheDamage(t *testing.T) {
	file, truth := allKindsRecording(t, 200, false)
	_, complete, _ := invoke(t, "", "-codes", writeRecording(t, file))
	path := writeRecording(t, file[:len(file)*2/3])
	code, stdout, stderr := invoke(t, "", "-codes", path)
	require.Equal(t, exitOK, code, stderr)
	require.True(t, strings.HasPrefix(complete, stdout))
	require.Greater(t, len(stdout), len(complete)/2)
	require.Contains(t, stderr, "trace: "+path+": the file can be played up to ")

	code, stdout, stderr = invoke(t, "", path)
	require.Equal(t, exitOK, code, stderr)
	require.Contains(t, stderr, "the file can be played up to ")
	middle := bytes.Clone(file)
	middle[len(middle)/2] ^= 1
	code, _, stderr = invoke(t, "", writeRecording(t, middle))
	require.Equal(t, exitOK, code, stderr)
	require.Regexp(t, `trace: .*: what is from \S+ to \S+ is missing: `, stderr)

	require.NotContains(t, stdout, fmt.Sprintf(": %d ticks", len(truth)))
}
