package main

import (
	"bufio"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"mime"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"cofferdam"
)

const (
	// More lines do not help a model.
	matchesMax = 100
	// A longer line, such as minified code, is cut.
	lineBytesMax = 500
	// A match of at most this length is found wherever it is in a line.
	overlapBytes = 4 << 10
	// The same limit as in the host's own search.
	patternBytesMax = 256
	// Maximum number of names in a failure.
	suggestedMax = 5
	warningsMax  = 20
	// Maximum number of names that are compared to find those that are there twice. A tar file may
	// have any number.
	namesMax = zipEntriesMax
)

// Advice about an archive that unpacks to too much.
const (
	listAdvice = "read or search an entry near its beginning, if you know the path of one"
	readAdvice = "list it, or read the beginning of an entry"
)

// ListInput contains the arguments of list_archive.
type ListInput struct {
	File  string `json:"file" description:"The archive, for example /data/logs.zip."`
	Glob  string `json:"glob" description:"Only entries whose path or last part matches, for example *.txt; all if it is empty." default:""`
	Limit int    `json:"limit" description:"Maximum number of entries." default:"200" minimum:"1" maximum:"2000"`
}

// Listing is the result of list_archive.
type Listing struct {
	Format  string  `json:"format"`
	Entries []Entry `json:"entries"`
	// The following fields count all entries, listed or not.
	Count     int      `json:"count"`
	Bytes     int64    `json:"bytes"`
	Truncated bool     `json:"truncated"`
	Warnings  []string `json:"warnings"`
}

// Entry is an entry of a listing.
type Entry struct {
	Path string `json:"path"`
	Kind string `json:"kind"`
	// Bytes is null if the archive does not contain the size.
	Bytes    *int64 `json:"bytes"`
	Modified string `json:"modified,omitempty"`
	Target   string `json:"target,omitempty"`
}

func listArchive(call *cofferdam.Call, in ListInput) (*Listing, error) {
	if err := checkGlob(in.Glob); err != nil {
		return nil, err
	}
	listing := &Listing{Entries: []Entry{}, Warnings: []string{}}
	packed := int64(0)
	names := names{seed: maphash.MakeSeed(), count: map[uint64]int{}, folded: map[uint64]int{}}
	err := with(in.File, listAdvice, func(archive archive) error {
		listing.Format = archive.format
		return archive.walk(func(it entry) (bool, error) {
			listing.Count++
			listing.Bytes += max(it.size, 0)
			packed += it.packed
			if danger := dangerOf(it); danger != "" {
				listing.warn("`%s` %s", it.path, danger)
			}
			if problem := names.problemOf(it); problem != "" {
				listing.warn("`%s` %s", it.path, problem)
			}
			if matches(in.Glob, it.path) {
				if len(listing.Entries) < in.Limit {
					listing.Entries = append(listing.Entries, shown(it))
				} else {
					listing.Truncated = true
				}
			}
			return false, call.Err()
		})
	})
	if err != nil {
		return nil, err
	}
	if packed > 0 && listing.Bytes > harmlessBytes && listing.Bytes/packed > ratioMax {
		listing.warn("the entries unpack to %d times their size: this may be made to fill disks", listing.Bytes/packed)
	}
	return listing, nil
}

func (listing *Listing) warn(format string, arguments ...any) {
	switch len(listing.Warnings) {
	case warningsMax:
		listing.Warnings = append(listing.Warnings, "there are more of these")
	case warningsMax + 1:
	default:
		listing.Warnings = append(listing.Warnings, fmt.Sprintf(format, arguments...))
	}
}

func shown(it entry) Entry {
	entry := Entry{Path: it.path, Kind: it.kind, Target: it.target}
	if it.size >= 0 {
		entry.Bytes = &it.size
	}
	if !it.modified.IsZero() {
		entry.Modified = it.modified.UTC().Format(time.RFC3339)
	}
	return entry
}

// names counts the files of each name, as hashes, which need less memory.
type names struct {
	seed maphash.Seed
	// count has the files of a name, and folded the names that differ only in case.
	count, folded map[uint64]int
}

// problemOf counts an entry and describes how its name clashes with an earlier one.
func (names *names) problemOf(it entry) string {
	if it.kind == "directory" {
		return ""
	}
	clean := path.Clean(strings.ReplaceAll(it.path, `\`, "/"))
	name := maphash.String(names.seed, clean)
	if names.count[name] == 0 && len(names.count) == namesMax {
		return ""
	}
	names.count[name]++
	switch names.count[name] {
	case 1:
		folded := maphash.String(names.seed, strings.ToLower(clean))
		names.folded[folded]++
		if names.folded[folded] == 2 {
			return "differs from another name only in case: some systems unpack both to the same file"
		}
	case 2:
		return "is there more than once: programs differ in which one they unpack"
	}
	return ""
}

// dangerOf describes the damage of unpacking an entry without checks.
func dangerOf(it entry) string {
	slashed := strings.ReplaceAll(it.path, `\`, "/")
	switch {
	case it.path == "" || strings.ContainsFunc(it.path, unicode.IsControl):
		return "has no name that can be shown"
	case strings.HasPrefix(slashed, "/") || len(slashed) > 1 && slashed[1] == ':':
		return "is an absolute path"
	case slices.Contains(strings.Split(slashed, "/"), ".."):
		return "leads out of the directory that it is unpacked into"
	case it.kind == "special":
		return "is a device or something like it"
	case it.kind == "link" && (path.IsAbs(it.target) || strings.HasPrefix(path.Join(path.Dir(slashed), it.target), "..")):
		return fmt.Sprintf("is a link that leads out: to `%s`", it.target)
	}
	for _, character := range it.path {
		if unicode.Is(unicode.Bidi_Control, character) {
			return fmt.Sprintf("has the invisible character %U, which can make its name look like another", character)
		}
	}
	return ""
}

// ReadInput contains the arguments of read_archive_entry.
type ReadInput struct {
	File   string `json:"file" description:"The archive, for example /data/logs.zip."`
	Entry  string `json:"entry" description:"The path of the file in it, as list_archive shows it."`
	Offset int64  `json:"offset" description:"The first byte." default:"0" minimum:"0"`
	Length int64  `json:"length" description:"Maximum number of bytes." default:"65536" minimum:"1" maximum:"1048576"`
}

func readEntry(_ *cofferdam.Call, in ReadInput) ([]cofferdam.Content, error) {
	var contents []cofferdam.Content
	var others []string
	err := with(in.File, readAdvice, func(archive archive) error {
		return archive.walk(func(it entry) (bool, error) {
			if it.path != in.Entry || it.open == nil {
				if len(others) < suggestedMax && it.open != nil {
					others = append(others, "`"+it.path+"`")
				}
				return false, nil
			}
			content, more, err := part(it, in.Offset, in.Length)
			contents = contentsOf(it.path, content, more)
			return true, err
		})
	})
	if err != nil {
		return nil, err
	}
	if contents == nil {
		failure := cofferdam.Failf("there is no file `%s` in the archive", in.Entry)
		if len(others) > 0 {
			failure.Suggest("call list_archive; there are for example %s", strings.Join(others, ", "))
		}
		return nil, failure
	}
	return contents, nil
}

// part reads a part of an entry, and reports whether there is more.
func part(it entry, offset, length int64) ([]byte, bool, error) {
	reader, err := it.open()
	if err != nil {
		return nil, false, err
	}
	if _, err := io.CopyN(io.Discard, reader, offset); err != nil && !errors.Is(err, io.EOF) {
		return nil, false, err
	}
	content, err := io.ReadAll(io.LimitReader(reader, length+1))
	if int64(len(content)) > length {
		return content[:length], true, nil
	}
	return content, false, err
}

func contentsOf(name string, content []byte, more bool) []cofferdam.Content {
	var contents []cofferdam.Content
	if text, is := textOf(content, more); is {
		contents = append(contents, cofferdam.Text(text))
	} else {
		kind := mime.TypeByExtension(path.Ext(name))
		if kind == "" {
			kind = "application/octet-stream"
		}
		contents = append(contents, cofferdam.Blob{MediaType: kind, Data: content})
	}
	if more {
		contents = append(contents, cofferdam.Text("(there is more: pass a larger `offset`)"))
	}
	return contents
}

// textOf also accepts text that is cut in the middle of a character.
func textOf(content []byte, isCut bool) (string, bool) {
	for range utf8.UTFMax {
		if utf8.Valid(content) {
			return string(content), !strings.ContainsRune(string(content), 0)
		}
		if !isCut || len(content) == 0 {
			break
		}
		content = content[:len(content)-1]
	}
	return "", false
}

// SearchInput contains the arguments of search_archive.
type SearchInput struct {
	File    string `json:"file" description:"The archive, for example /data/logs.tar.gz."`
	Pattern string `json:"pattern" description:"A regular expression of Go (RE2); (?i) at its beginning ignores case."`
	Glob    string `json:"glob" description:"Only entries whose path or last part matches, for example *.log; all if it is empty." default:""`
}

// Found is the result of search_archive.
type Found struct {
	Matches   []Match `json:"matches"`
	Searched  int     `json:"searched"`
	Truncated bool    `json:"truncated"`
}

// Match is a matching line.
type Match struct {
	Path string `json:"path"`
	Line int    `json:"line"`
	Text string `json:"text"`
}

func searchArchive(call *cofferdam.Call, in SearchInput) (*Found, error) {
	if err := checkGlob(in.Glob); err != nil {
		return nil, err
	}
	if len(in.Pattern) > patternBytesMax {
		return nil, cofferdam.Failf("the pattern has more than %d bytes", patternBytesMax)
	}
	pattern, err := regexp.Compile(in.Pattern)
	if err != nil {
		return nil, cofferdam.Failf("`%s` is not a regular expression: %v", in.Pattern, err).Suggest("write a backslash before letters that mean something, such as `\\(`")
	}
	found := &Found{Matches: []Match{}}
	err = with(in.File, readAdvice, func(archive archive) error {
		return archive.walk(func(it entry) (bool, error) {
			if it.open == nil || !matches(in.Glob, it.path) {
				return false, call.Err()
			}
			call.Progress(float64(found.Searched), 0, it.path)
			err := found.search(it, pattern)
			return found.Truncated, err
		})
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

func (found *Found) search(it entry, pattern *regexp.Regexp) error {
	content, err := it.open()
	if err != nil {
		return err
	}
	reader := bufio.NewReaderSize(content, 64<<10)
	if head, _ := reader.Peek(512); slices.Contains(head, 0) {
		return nil
	}
	found.Searched++
	// A line that is longer than the buffer is searched in pieces, each with the end of the one before
	// it, because a match can be in both.
	var searched []byte
	isFound := false
	for number := 1; ; {
		piece, isPrefix, err := reader.ReadLine()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		overlap := searched[max(0, len(searched)-overlapBytes):]
		searched = append(searched[:copy(searched, overlap)], piece...)
		if !isFound && pattern.Match(searched) {
			if len(found.Matches) == matchesMax {
				found.Truncated = true
				return nil
			}
			isFound = true
			text := strings.ToValidUTF8(string(searched[:min(len(searched), lineBytesMax)]), "\uFFFD")
			found.Matches = append(found.Matches, Match{it.path, number, text})
		}
		if !isPrefix {
			number++
			searched, isFound = searched[:0], false
		}
	}
}

func checkGlob(glob string) error {
	if _, err := path.Match(glob, ""); err != nil {
		return cofferdam.Failf("`%s` is not a pattern for file names", glob).Suggest("use `*`, `?` and `[ab]`, as in *.txt")
	}
	return nil
}

func matches(glob, name string) bool {
	if glob == "" {
		return true
	}
	whole, _ := path.Match(glob, name)
	last, _ := path.Match(glob, path.Base(name))
	return whole || last
}
