//go:build !wasip1

package cofferdamtest

import (
	"cmp"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"cofferdam/internal/abi"
)

// A store in memory contains files. A directory exists if it contains a file, or if there is a path
// that ends with `/`.

func (it *native) Stores() []abi.Store {
	var all []abi.Store
	for name := range it.Files {
		all = append(all, abi.Store{Name: name, Writable: !slices.Contains(it.ReadOnly, name)})
	}
	slices.SortFunc(all, func(a, b abi.Store) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// at returns the files of a store and checks a path in it.
func (it *native) at(store, name string) (map[string]string, *abi.Error) {
	files, is := it.Files[store]
	switch {
	case !is:
		return nil, &abi.Error{Case: abi.FilesUnknownStore}
	case name != "" && (path.Clean(name) != name || name == "." || strings.HasPrefix(name, "/") ||
		strings.HasPrefix(name, "..") || strings.ContainsAny(name, ":\\")):
		return nil, &abi.Error{Case: abi.FilesInvalidPath, Text: "`" + name + "` is not a path in a store"}
	default:
		return files, nil
	}
}

// toChange does the same as at, for a change.
func (it *native) toChange(store, name string) (map[string]string, *abi.Error) {
	files, err := it.at(store, name)
	if err == nil && slices.Contains(it.ReadOnly, store) {
		err = &abi.Error{Case: abi.FilesReadOnly}
	}
	return files, err
}

func isDirectory(files map[string]string, name string) bool {
	if name == "" {
		return true
	}
	for file := range files {
		if strings.HasPrefix(file, name+"/") {
			return true
		}
	}
	return false
}

func (it *native) StatFile(store, name string) (abi.Stat, *abi.Error) {
	files, err := it.at(store, name)
	if err != nil {
		return abi.Stat{}, err
	}
	content, is := files[name]
	switch {
	case is:
		return abi.Stat{Size: uint64(len(content))}, nil
	case isDirectory(files, name):
		return abi.Stat{Directory: true}, nil
	default:
		return abi.Stat{}, &abi.Error{Case: abi.FilesNotFound}
	}
}

func (it *native) ReadFile(store, name string, offset, length uint64) ([]byte, *abi.Error) {
	files, err := it.at(store, name)
	if err != nil {
		return nil, err
	}
	content, is := files[name]
	if !is {
		return nil, &abi.Error{Case: abi.FilesNotFound}
	}
	rest := content[min(offset, uint64(len(content))):]
	return []byte(rest[:min(length, uint64(len(rest)))]), nil
}

func (it *native) WriteFile(store, name string, content []byte, replace bool) *abi.Error {
	files, err := it.toChange(store, name)
	if err != nil {
		return err
	}
	_, is := files[name]
	switch {
	case is && !replace:
		return &abi.Error{Case: abi.FilesAlreadyExists}
	case isDirectory(files, name):
		return &abi.Error{Case: abi.FilesWrongType, Text: "`" + name + "` is a directory"}
	}
	files[name] = string(content)
	return nil
}

func (it *native) DeleteFile(store, name string) *abi.Error {
	files, err := it.toChange(store, name)
	if err != nil {
		return err
	}
	if _, is := files[name]; !is {
		return &abi.Error{Case: abi.FilesNotFound}
	}
	delete(files, name)
	return nil
}

func (it *native) CreateDirectory(store, name string) *abi.Error {
	files, err := it.toChange(store, name)
	if err != nil {
		return err
	}
	if _, is := files[name]; is || isDirectory(files, name) {
		return &abi.Error{Case: abi.FilesAlreadyExists}
	}
	files[name+"/"] = ""
	return nil
}

func (it *native) ListFiles(store, directory, glob string, recursive bool) ([]abi.Entry, *abi.Error) {
	files, err := it.at(store, directory)
	if err != nil {
		return nil, err
	}
	directories := map[string]bool{}
	for file := range files {
		name, is := below(directory, file)
		if !is {
			continue
		}
		segments := strings.Split(strings.TrimSuffix(name, "/"), "/")
		for i := range segments {
			last := i == len(segments)-1 && !strings.HasSuffix(name, "/")
			if i == 0 || recursive {
				directories[strings.Join(segments[:i+1], "/")] = !last
			}
		}
	}
	var entries []abi.Entry
	for name, is := range directories {
		if matches(glob, name) {
			entries = append(entries, abi.Entry{Name: name, Directory: is})
		}
	}
	slices.SortFunc(entries, func(a, b abi.Entry) int {
		switch {
		case a.Directory && !b.Directory:
			return -1
		case b.Directory && !a.Directory:
			return 1
		default:
			return cmp.Compare(a.Name, b.Name)
		}
	})
	return entries, nil
}

func (it *native) SearchFiles(store, directory string, query abi.Query) ([]abi.Match, bool, *abi.Error) {
	files, err := it.at(store, directory)
	if err != nil {
		return nil, false, err
	}
	flags := "(?i)"
	if query.CaseSensitive {
		flags = ""
	}
	pattern, wrong := regexp.Compile(flags + query.Pattern)
	if wrong != nil {
		return nil, false, &abi.Error{Case: abi.FilesInvalidPattern, Text: wrong.Error()}
	}
	var found []abi.Match
	for file, content := range files {
		name, is := below(directory, file)
		if !is || !query.Recursive && strings.Contains(name, "/") || !matches(query.Glob, name) || !utf8.ValidString(content) {
			continue
		}
		if lines := search(pattern, content); len(lines) > 0 {
			found = append(found, abi.Match{Path: file, Snippet: lines[0].Text, Lines: lines})
		}
	}
	slices.SortFunc(found, func(a, b abi.Match) int { return cmp.Compare(a.Path, b.Path) })
	return found, false, nil
}

func search(pattern *regexp.Regexp, content string) []abi.Line {
	var lines []abi.Line
	for i, line := range strings.Split(content, "\n") {
		if pattern.MatchString(line) {
			lines = append(lines, abi.Line{Number: uint64(i + 1), Text: strings.TrimSuffix(line, "\r")})
		}
	}
	return lines
}

// below returns the path of a file relative to a directory.
func below(directory, file string) (string, bool) {
	if directory == "" {
		return file, true
	}
	return strings.CutPrefix(file, directory+"/")
}

// matches supports `*`, `?` and `**`. A glob without `/` is matched against the last segment of the
// path.
func matches(glob, name string) bool {
	if glob == "" {
		return true
	}
	if !strings.Contains(glob, "/") {
		name = path.Base(name)
	}
	pattern := regexp.QuoteMeta(glob)
	pattern = strings.ReplaceAll(pattern, `\*\*/`, `(.*/)?`)
	pattern = strings.ReplaceAll(pattern, `\*\*`, `.*`)
	pattern = strings.ReplaceAll(pattern, `\*`, `[^/]*`)
	pattern = strings.ReplaceAll(pattern, `\?`, `[^/]`)
	is, err := regexp.MatchString("(?i)^"+pattern+"$", name)
	return is && err == nil
}
