// Package files works on the file stores that were granted to the plugin, without a file system between.
//
// The standard library sees the same stores: one called `data` is the directory `/data`, and package os is the way to go for
// most tools. This package adds what a file system has not: search at the host's speed, globs, exclusive creation and
// replacement of whole files in one step, and errors that say which limit was met.
//
// A path is relative to its store, with `/` between segments, without `.` and `..`. The changes of a call become visible to
// others together when the tool has succeeded. If it fails, none remain.
//
// Errors are [*Error]. They fit [fs.ErrNotExist], [fs.ErrExist], [fs.ErrPermission] and [fs.ErrInvalid] of io/fs where these
// say the same, so that [errors.Is] finds out:
//
//	content, err := files.Open("data").Read("note.txt")
//	if errors.Is(err, fs.ErrNotExist) { … }
package files

import (
	"io/fs"
	"math"

	"cofferdam/internal/abi"
)

// Store is a store by its name. Naming one asks for nothing: whether it was granted shows when it is used.
type Store struct {
	name string
}

// Granted is a store that was granted.
type Granted struct {
	Name string
	// Writable says whether something can be changed in it.
	Writable bool
}

// Stat is what is known of a file or directory without reading it.
type Stat struct {
	IsDirectory bool
	// Size is the length in bytes; 0 for a directory.
	Size uint64
}

// Entry is a line of a listing.
type Entry struct {
	// Name is the name; below the listed directory a path from there.
	Name        string
	IsDirectory bool
}

// Query says what to search for. The zero value of what is not the pattern ignores case and searches directories below.
type Query struct {
	// Pattern is a regular expression in the syntax of the Rust crate regex, matched per line; at most 256 characters. What Go
	// understands is nearly the same.
	Pattern string
	// Glob takes only files whose path matches; all if it is empty. See [Store.Find].
	Glob          string
	CaseSensitive bool
	// Flat leaves out the directories below.
	Flat bool
}

// Found is what a search has found.
type Found struct {
	// Matches are the matching files, bytewise by path.
	Matches []Match
	// Truncated says whether something was left out because there was too much.
	Truncated bool
}

// Match is a file with at least one matching line.
type Match struct {
	Path string
	// Snippet is the text around the first match.
	Snippet string
	Lines   []Line
}

// Line is a line that matches.
type Line struct {
	// Number counts from 1.
	Number uint64
	// Text has no terminator.
	Text string
}

// Stores gives the stores that were granted, by name.
func Stores() []Granted {
	stores := abi.Stores()
	granted := make([]Granted, len(stores))
	for i, store := range stores {
		granted[i] = Granted{store.Name, store.Writable}
	}
	return granted
}

// Open names a store. It cannot fail, and there is nothing to close.
func Open(store string) Store {
	return Store{store}
}

// Stat says what is at a path; `""` is the root.
func (store Store) Stat(path string) (Stat, error) {
	stat, err := abi.StatFile(store.name, path)
	return Stat{stat.Directory, stat.Size}, store.err("stat", path, err)
}

// Read gives the whole content of a file. A directory is [NotFound], a file that is larger than a call may hold is [Limit].
func (store Store) Read(path string) ([]byte, error) {
	return store.ReadRange(path, 0, math.MaxUint64)
}

// ReadRange gives at most `length` bytes from `offset` on; fewer where the file ends.
func (store Store) ReadRange(path string, offset, length uint64) ([]byte, error) {
	content, err := abi.ReadFile(store.name, path, offset, length)
	return content, store.err("read", path, err)
}

// Create writes a new file in one step and creates missing directories above it. A file that is there is [AlreadyExists]; of
// several that create it at the same time exactly one succeeds.
func (store Store) Create(path string, content []byte) error {
	return store.err("create", path, abi.WriteFile(store.name, path, content, false))
}

// Replace writes a whole file in one step, whether it is there or not, and creates missing directories above it.
func (store Store) Replace(path string, content []byte) error {
	return store.err("replace", path, abi.WriteFile(store.name, path, content, true))
}

// Delete deletes a file. A directory is [NotFound].
func (store Store) Delete(path string) error {
	return store.err("delete", path, abi.DeleteFile(store.name, path))
}

// CreateDirectory creates a directory and missing ones above it. One that is there is [AlreadyExists].
func (store Store) CreateDirectory(path string) error {
	return store.err("create directory", path, abi.CreateDirectory(store.name, path))
}

// List gives the children of a directory: directories first, then files, each bytewise by name. A missing directory has none.
func (store Store) List(directory string) ([]Entry, error) {
	return store.list(directory, "", false)
}

// Find gives everything below a directory whose path matches the glob: `*`, `?`, `**`, `[ab]`, `{a,b}`, case ignored. A pattern
// without `/` is compared with the last part of the path; an empty one matches everything.
func (store Store) Find(directory, glob string) ([]Entry, error) {
	return store.list(directory, glob, true)
}

func (store Store) list(directory, glob string, recursive bool) ([]Entry, error) {
	listed, err := abi.ListFiles(store.name, directory, glob, recursive)
	if err != nil {
		return nil, store.err("list", directory, err)
	}
	entries := make([]Entry, len(listed))
	for i, entry := range listed {
		entries[i] = Entry{entry.Name, entry.Directory}
	}
	return entries, nil
}

// Search searches the files below a directory. Files that are not UTF-8 are passed over.
func (store Store) Search(directory string, query Query) (Found, error) {
	asked := abi.Query{
		Pattern: query.Pattern, CaseSensitive: query.CaseSensitive, Glob: query.Glob, Recursive: !query.Flat,
	}
	matches, truncated, err := abi.SearchFiles(store.name, directory, asked)
	if err != nil {
		return Found{}, store.err("search", directory, err)
	}
	found := Found{Matches: make([]Match, len(matches)), Truncated: truncated}
	for i, match := range matches {
		lines := make([]Line, len(match.Lines))
		for j, line := range match.Lines {
			lines[j] = Line{line.Number, line.Text}
		}
		found.Matches[i] = Match{match.Path, match.Snippet, lines}
	}
	return found, nil
}

// Reason says why an operation was refused. A refused operation has changed nothing.
type Reason uint8

// In the order of `wit/files.wit`.
const (
	// UnknownStore: no store of that name was granted.
	UnknownStore Reason = iota
	// NotFound: no regular file, or no directory, at that path.
	NotFound
	// AlreadyExists: the path is taken.
	AlreadyExists
	// WrongType: the path, or one above it, is taken by something of another kind.
	WrongType
	// InvalidPath: the path breaks a rule.
	InvalidPath
	// ReadOnly: the store may only be read.
	ReadOnly
	// Denied: the grant does not reach that far.
	Denied
	// Limit of the store or of the call.
	Limit
	// InvalidPattern: a glob or regular expression is not valid.
	InvalidPattern
	// Unavailable: the store cannot be reached, or somebody else has changed the file meanwhile. Trying again may help.
	Unavailable
)

var reasons = [...]string{
	UnknownStore:   "no store of that name was granted",
	NotFound:       "not found",
	AlreadyExists:  "it exists already",
	WrongType:      "it is of another type",
	InvalidPath:    "the path is not valid",
	ReadOnly:       "the store may only be read",
	Denied:         "the grant does not reach that far",
	Limit:          "a limit is met",
	InvalidPattern: "the pattern is not valid",
	Unavailable:    "the store cannot be reached at the moment",
}

// String says the reason in words.
func (reason Reason) String() string {
	if int(reason) < len(reasons) {
		return reasons[reason]
	}
	return "refused"
}

// Error is a refused operation.
type Error struct {
	// Operation is for example `read`.
	Operation string
	Store     string
	Path      string
	Reason    Reason
	// Detail is what the host said about it; empty if the reason says all.
	Detail string
}

// Error names the path and the reason.
func (err *Error) Error() string {
	what := err.Detail
	if what == "" {
		what = err.Reason.String()
	}
	if err.Reason == UnknownStore {
		return err.Operation + " in the store `" + err.Store + "`: " + what
	}
	return err.Operation + " `" + err.Path + "`: " + what
}

// Is compares with the errors of io/fs.
func (err *Error) Is(target error) bool {
	switch err.Reason {
	case UnknownStore, NotFound:
		return target == fs.ErrNotExist
	case AlreadyExists:
		return target == fs.ErrExist
	case ReadOnly, Denied:
		return target == fs.ErrPermission
	case InvalidPath, InvalidPattern:
		return target == fs.ErrInvalid
	default:
		return false
	}
}

func (store Store) err(operation, path string, err *abi.Error) error {
	if err == nil {
		return nil
	}
	return &Error{operation, store.name, path, Reason(err.Case), err.Text}
}
