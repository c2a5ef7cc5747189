package field

// This file finds the repl tag among the tags of a struct's field.

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// TagKey is the key of struct tags.
const TagKey = "repl"

// TagText returns the text of the repl tag among a field's tags, empty if there is none. reflect ignores what it can't
// read, so without a repl tag, TagText returns an error for what was probably meant as one. An empty repl tag permits
// any others.
func TagText(tags reflect.StructTag) (string, error) {
	text, ok := tags.Lookup(TagKey)
	if ok || tags == "" {
		return text, nil
	}
	if tag, err := ParseTag(string(tags)); err == nil && !tag.Empty() {
		return "", fmt.Errorf("the tag has no key: write repl:%.80q", string(tags))
	}
	for rest := strings.TrimSpace(string(tags)); rest != ""; rest = strings.TrimSpace(rest) {
		end := strings.IndexAny(rest, " :=\"")
		if end < 0 {
			end = len(rest)
		}
		key := strings.TrimLeft(rest[:end], ",;")
		value, after, ok := cutQuoted(rest[end:])
		switch {
		case ok && key == rest[:end] && resemblesKey(key):
			return "", fmt.Errorf("the tag key %.40q is not known: write repl:%.80q; if the key belongs to "+
				`something else, add repl:""`, key, value)
		case resemblesKey(key):
			return "", fmt.Errorf(`the tag %.80q can't be read: write repl:"KEYS", without a blank before the quotes `+
				"and with nothing but a blank between two tags", rest)
		case !ok:
			return "", nil
		}
		rest = after
	}
	return "", nil
}

// cutQuoted cuts a colon and a quoted value from the front of tags.
func cutQuoted(tags string) (value, after string, ok bool) {
	quoted, found := strings.CutPrefix(tags, ":")
	if !found || !strings.HasPrefix(quoted, `"`) {
		return "", "", false
	}
	if quoted, err := strconv.QuotedPrefix(quoted); err == nil {
		value, err = strconv.Unquote(quoted)
		return value, tags[1+len(quoted):], err == nil
	}
	return "", "", false
}

// resemblesKey reports whether a key was probably meant as TagKey: it begins alike, or one letter is missing, added
// or swapped with the next one. One other letter makes words: real, repo.
func resemblesKey(key string) bool {
	key = strings.ToLower(key)
	if strings.HasPrefix(key, TagKey) {
		return true
	}
	i := 0
	for i < min(len(key), len(TagKey)) && key[i] == TagKey[i] {
		i++
	}
	rest, want := key[i:], TagKey[i:]
	switch len(rest) - len(want) {
	case -1:
		return rest == want[1:]
	case 0:
		return len(rest) > 1 && rest[0] == want[1] && rest[1] == want[0] && rest[2:] == want[2:]
	case 1:
		return rest[1:] == want
	}
	return false
}
