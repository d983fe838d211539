// Package files gives access to the file stores that are granted to the plugin, without a file
// system in between.
//
// The standard library sees the same stores: the store `data` is the directory `/data`. For most
// tools package os is the better choice. This package adds a search that the host runs, globs,
// atomic creation and replacement of whole files, and errors that name the limit that was reached.
//
// A path is relative to its store, with `/` between segments, without `.` and `..`. The changes of
// a call become visible to others together when the tool has succeeded. If it fails, the host drops
// them all.
//
// Errors are [*Error]. With [errors.Is], they match [fs.ErrNotExist], [fs.ErrExist],
// [fs.ErrPermission] and [fs.ErrInvalid] of io/fs where these have the same meaning:
//
//	content, err := files.Open("data").Read("note.txt")
//	if errors.Is(err, fs.ErrNotExist) { … }
package files

import (
	"io/fs"
	"math"

	"cofferdam/internal/abi"
)

// Store is a store with a given name. The name is not checked until the store is used.
type Store struct {
	name string
}

// Granted is a granted store.
type Granted struct {
	Name string
	// Writable is true if the plugin may change files.
	Writable bool
}

// Stat is the metadata of a file or directory.
type Stat struct {
	IsDirectory bool
	// Size is the length in bytes; 0 for a directory.
	Size uint64
}

// Entry is an entry of a listing.
type Entry struct {
	// Name is the name; below the listed directory, it is the path relative to it.
	Name        string
	IsDirectory bool
}

// Query contains the parameters of a search. By default it ignores case and includes
// subdirectories.
type Query struct {
	// Pattern is a regular expression in the syntax of the Rust crate regex, matched per line; at
	// most 256 characters. Go's syntax is nearly the same.
	Pattern string
	// Glob selects files by their path; if it is empty, all files are searched. See [Store.Find].
	Glob          string
	CaseSensitive bool
	// Flat excludes subdirectories.
	Flat bool
}

// Found is the result of a search.
type Found struct {
	// Matches are the matching files, sorted bytewise by path.
	Matches []Match
	// Truncated is true if matches were dropped because there were too many.
	Truncated bool
}

// Match is a file with at least one matching line.
type Match struct {
	Path string
	// Snippet is the text around the first match.
	Snippet string
	Lines   []Line
}

// Line is a matching line.
type Line struct {
	// Number is the number of the line, from 1.
	Number uint64
	// Text is the line without its terminator.
	Text string
}

// Stores returns the granted stores, sorted by name.
func Stores() []Granted {
	stores := abi.Stores()
	granted := make([]Granted, len(stores))
	for i, store := range stores {
		granted[i] = Granted{store.Name, store.Writable}
	}
	return granted
}

// Open returns the store of this name. It cannot fail, and there is nothing to close.
func Open(store string) Store {
	return Store{store}
}

// Stat returns the metadata of the entry at a path; `""` is the root.
func (store Store) Stat(path string) (Stat, error) {
	stat, err := abi.StatFile(store.name, path)
	return Stat{stat.Directory, stat.Size}, store.err("stat", path, err)
}

// Read returns the whole content of a file. The error is [NotFound] for a directory, and [Limit]
// for a file that is larger than a call may hold.
func (store Store) Read(path string) ([]byte, error) {
	return store.ReadRange(path, 0, math.MaxUint64)
}

// ReadRange returns at most `length` bytes from `offset`; fewer at the end of the file.
func (store Store) ReadRange(path string, offset, length uint64) ([]byte, error) {
	content, err := abi.ReadFile(store.name, path, offset, length)
	return content, store.err("read", path, err)
}

// Create writes a new file atomically and creates missing parent directories. The error is
// [AlreadyExists] if the file exists; of several concurrent creators exactly one succeeds.
func (store Store) Create(path string, content []byte) error {
	return store.err("create", path, abi.WriteFile(store.name, path, content, false))
}

// Replace writes a whole file atomically, whether it exists or not, and creates missing parent
// directories.
func (store Store) Replace(path string, content []byte) error {
	return store.err("replace", path, abi.WriteFile(store.name, path, content, true))
}

// Delete deletes a file. The error is [NotFound] for a directory.
func (store Store) Delete(path string) error {
	return store.err("delete", path, abi.DeleteFile(store.name, path))
}

// CreateDirectory creates a directory and its missing parents. The error is [AlreadyExists] if it
// exists.
func (store Store) CreateDirectory(path string) error {
	return store.err("create directory", path, abi.CreateDirectory(store.name, path))
}

// List returns the entries of a directory: directories first, then files, each sorted bytewise by
// name. A missing directory has none.
func (store Store) List(directory string) ([]Entry, error) {
	return store.list(directory, "", false)
}

// Find returns all entries below a directory whose path matches the glob: `*`, `?`, `**`, `[ab]`,
// `{a,b}`, case ignored. A pattern without `/` is matched against the last segment of the path; an
// empty one matches everything.
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

// Search searches the files below a directory. Files that are not UTF-8 are skipped.
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

// Reason is the reason of an [Error]. A failed operation has changed nothing.
type Reason uint8

// In the order of `wit/files.wit`.
const (
	// UnknownStore means that no store of this name is granted.
	UnknownStore Reason = iota
	// NotFound means that there is no regular file, or no directory, at the path.
	NotFound
	// AlreadyExists means that the path exists already.
	AlreadyExists
	// WrongType means that the path, or one of its parents, is an entry of another type.
	WrongType
	// InvalidPath means that the path breaks a rule.
	InvalidPath
	// ReadOnly means that the store is read-only.
	ReadOnly
	// Denied means that the grant does not allow the operation.
	Denied
	// Limit means that a limit of the store or of the call is reached.
	Limit
	// InvalidPattern means that a glob or a regular expression is invalid.
	InvalidPattern
	// Unavailable means that the store cannot be reached, or that another writer has changed the
	// file in the meantime. A retry may help.
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

// String describes the reason.
func (reason Reason) String() string {
	if int(reason) < len(reasons) {
		return reasons[reason]
	}
	return "refused"
}

// Error is the error of an operation.
type Error struct {
	// Operation is for example `read`.
	Operation string
	Store     string
	Path      string
	Reason    Reason
	// Detail is the host's message; it may be empty.
	Detail string
}

// Error returns a message with the path and the reason.
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

// ForModel returns true: a tool that returns the error shows its message to the model.
func (err *Error) ForModel() bool {
	return true
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
