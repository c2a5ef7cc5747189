package recording_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/recording"
)

type ball struct {
	X float32 `repl:"range=-100:100,step=0.01"`
}

func ballSchema() *replication.Schema {
	schema := replication.NewSchema()
	replication.Register[ball](schema)
	return schema
}

// record10s records ten seconds of a ball.
func record10s(path string) error {
	file, _ := os.Create(path)
	defer func() { _ = file.Close() }()
	world := ecs.NewWorld()
	server := replication.NewServer(&world, ballSchema())
	recorder := recording.NewRecorder(server, file, recording.WithMeta("level", "one"))
	e := world.NewEntity(ecs.ComponentID[ball](&world), ecs.ComponentID[replication.Replicated](&world))
	for range 600 {
		(*ball)(world.Get(e, ecs.ComponentID[ball](&world))).X += 0.1
		server.Replicate()
	}
	return recorder.Close()
}

// replayAt shows where the ball was.
func replayAt(path string, at time.Duration) error {
	file, _ := os.ReadFile(path)
	world := ecs.NewWorld()
	player, err := recording.NewPlayer(&world, ballSchema(), bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return err
	}
	err = player.Seek(at)
	for _, e := range player.Client().Entities() {
		fmt.Println(player.Meta()["level"], player.Position(), *(*ball)(world.Get(e, ecs.ComponentID[ball](&world))))
	}
	return err
}

func Example() {
	path := filepath.Join(os.TempDir(), fmt.Sprint("match-", os.Getpid(), ".rec"))
	defer func() { _ = os.Remove(path) }()
	fmt.Println(record10s(path))
	fmt.Println(replayAt(path, 5*time.Second))
	// Output:
	// <nil>
	// one 5s {30.1}
	// <nil>
}
