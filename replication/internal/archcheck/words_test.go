//go:build !js && !wasip1

package archcheck

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// privateWords once had a meaning of their own in this code. What to write instead is beside them: the words of the
// field, which a reader brings along. They are looked for in names, word by word of their camel case, in comments and
// strings, and in the documentation.
var privateWords = []struct{ words, instead string }{
	{"talk talks talking", "message"},
	{"say says said saying", "report, send; a plain verb that names what is done"},
	{"hear hears heard", "receive"},
	{"tell tells told telling", "report, send, notify"},
	{"lane lanes", "channel"},
	{"loose", "unreliable"},
	{"draft drafts drafted", "pending message; in delta, the bits to be written"},
	{"stray strays", "out-of-sync block; of a clock, drift"},
	{"due", "dirty; of an interval, scheduled"},
	{"owe owes owed", "dirty"},
	{"news", "what changed"},
	{"stirred stir stirs", "changed blocks"},
	{"turned", "spawned or despawned, churned"},
	{"woke woken", "left idle"},
	{"fly flies flying flew", "in flight"},
	{"land lands landed", "is delivered"},
	{"doubt doubts doubtful", "marked lost"},
	{"sever severs severed", "end the history"},
	{"whole", "full state; full, complete, all of"},
	{"restructure restructures restructured", "change the component set"},
	{"leap leaps leapt", "keyframe fallback"},
	{"stream streams", "cached delta, shared packet"},
	{"bundle bundles", "atomic batch"},
	{"torn", "split"},
	{"facet facets", "sub-entity"},
	{"shape shapes shaped", "component layout"},
	{"bye byes", "disconnect"},
	{"lead leads leading", "input delay"},
	{"beat beats", "tick estimate"},
	{"eye eyes", "viewpoint"},
	{"takeover takeovers", "session migration"},
	{"throng storm fleet lean", "load world, chaos test, interest world, message-only"},
	{"calm", "idle"},
}

// privatePhrases are such words that are plain ones alone.
var privatePhrases = []struct{ pattern, instead string }{
	{`in step\b`, "in sync"},
	{`fall(s|ing|en)? (in|out) (of step|with)`, "enter sync, leave sync"},
	{`\bblock runs?\b|\bstep runs?\b|\brun cache\b|\bencoded runs?\b`, "cached entry"},
	{`\bsession('s)? tags?\b`, "epoch"},
	{`\b(none|all) of its business\b|\bwhat it is good for\b`, "say what happens"},
}

// allowedPhrases have a private word in its plain meaning, or as a name that is not ours to change.
var allowedPhrases = []struct{ pattern, why string }{
	{`whole numbers?`, "mathematics"},
	{`[Oo]rigin (header|check)|OriginPatterns|checkOrigin|Access-Control-Allow-Origin|location\.origin`, "of HTTP"},
	{`due to`, "because of"},
	{`WebTransport streams?|QUIC streams?|(byte|bit|video) ?streams?`, "of transports and files"},
	{`Streams?(Conn|Writer|Reader)|MaxIncoming(Uni)?Streams|MaxStreamReceive|EnableStreamReset|AcceptStream|(Readable|Writable)Stream`, "of transports"},
	{"[\"`]facets[\"`]", "a line of the schema text, which both ends hash"},
	{`FAILED in step`, "of the gate"},
	{`t\.Origin\(\)`, "of go/types"},
	{`B2\w*Shape\w*`, "of box2d"},
	{`lead_settled_s`, "a figure's name"},
}

// unchecked files may have them.
var unchecked = []string{
	"CHANGELOG.md",  // says which names went
	"words_test.go", // this list
	"testdata", ".git", "go.sum",
}

func TestWordsAreTheFields(t *testing.T) {
	hits := privateHits(t)
	if len(hits) > 0 {
		t.Errorf("%d private words:\n%s", len(hits), strings.Join(hits, "\n"))
	}
}

func privateHits(t *testing.T) (hits []string) {
	instead := map[string]string{}
	for _, p := range privateWords {
		for word := range strings.FieldsSeq(p.words) {
			instead[word] = p.instead
		}
	}
	var allow []string
	for _, p := range allowedPhrases {
		allow = append(allow, p.pattern)
	}
	allowed := regexp.MustCompile(strings.Join(allow, "|"))
	var phrases []*regexp.Regexp
	for _, p := range privatePhrases {
		phrases = append(phrases, regexp.MustCompile(p.pattern))
	}
	word := regexp.MustCompile(`[A-Z]+[a-z]*|[a-z]+`) // of camel case as well
	root := filepath.Join("..", "..", "..")
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if slices.Contains(unchecked, name) {
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		if d.IsDir() || !slices.Contains([]string{".go", ".md", ".py", ".html", ".js", ".yml"}, filepath.Ext(name)) && name != "run" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		short, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		for i, line := range strings.Split(string(text), "\n") {
			line = allowed.ReplaceAllString(line, "")
			for _, w := range word.FindAllString(line, -1) {
				if better, private := instead[strings.ToLower(w)]; private {
					hits = append(hits, fmt.Sprintf("%s:%d: %s: %s", short, i+1, w, better))
				}
			}
			for k, phrase := range phrases {
				if found := phrase.FindString(line); found != "" {
					hits = append(hits, fmt.Sprintf("%s:%d: %s: %s", short, i+1, found, privatePhrases[k].instead))
				}
			}
		}
		return nil
	}))
	return hits
}
