// Package abi is the boundary between the SDK and the host: the interface of `wit/` as Go types and
// functions.
//
// In a component (GOOS=wasip1) the functions are imports in the canonical ABI. The linker drops
// unused imports, so that a component imports only what its source uses. Elsewhere, [Native]
// implements them, for tests of tools without a host. This package only converts values.
//
// A missing optional string is empty: nowhere in `wit/` does an empty string have another meaning.
package abi

// Definition is `tool-definition`.
type Definition struct {
	Name         string
	Title        string
	Description  string
	InputSchema  string
	OutputSchema string
	Annotations  Annotations
}

// Annotations is `annotations`; nil is unknown.
type Annotations struct {
	ReadOnly, Destructive, Idempotent, OpenWorld, LongRunning *bool
}

// Kind is the case of `content`. Resources have two kinds, for text and for bytes.
type Kind uint8

const (
	Text Kind = iota
	JSON
	Blob
	ResourceText
	ResourceBlob
	Link
)

// Content is `content`. The kind determines which fields are used.
type Content struct {
	Kind      Kind
	Text      string
	Data      []byte
	MediaType string
	URI       string
	Name      string
}

// Failure is `failure`.
type Failure struct {
	Message    string
	Suggestion string
	Transient  *bool
	Value      string
}

// Error is an error variant of an import: the case, and its string if it has one.
type Error struct {
	Case uint8
	Text string
}

// The cases of `toolbox.error` that the SDK distinguishes.
const (
	ToolboxUnknown uint8 = iota
	ToolboxInvalidArguments
	ToolboxFailed
	ToolboxEnded
	ToolboxTooDeep
)

// The cases of `files.error`.
const (
	FilesUnknownStore uint8 = iota
	FilesNotFound
	FilesAlreadyExists
	FilesWrongType
	FilesInvalidPath
	FilesReadOnly
	FilesDenied
	FilesLimit
	FilesInvalidPattern
	FilesUnavailable
)

// The cases of `client.error`.
const (
	ClientUnsupported uint8 = iota
	ClientDenied
	ClientInvalid
	ClientLimit
	ClientFailed
)

// Store is `files.store`.
type Store struct {
	Name     string
	Writable bool
}

// Stat is `files.entry-stat`.
type Stat struct {
	Directory bool
	Size      uint64
}

// Entry is `files.entry`.
type Entry struct {
	Name      string
	Directory bool
}

// Query is `files.query`.
type Query struct {
	Pattern       string
	CaseSensitive bool
	Glob          string
	Recursive     bool
}

// Match is `files.search-match`.
type Match struct {
	Path    string
	Snippet string
	Lines   []Line
}

// Line is `files.line`.
type Line struct {
	Number uint64
	Text   string
}

// The cases of `client.request`, which are also those of `client.kind`.
const (
	AskForm uint8 = iota
	AskSample
	AskRoots
)

// Question is `client.question`.
type Question struct {
	Name    string
	Kind    uint8
	Message string
	// JSON is the schema of a form, or the parameters of a sample.
	JSON string
}

// The cases of `client.answer`.
const (
	Accepted uint8 = iota
	Declined
	Cancelled
	Message
	Roots
)

// Answer is `client.answer`.
type Answer struct {
	Case  uint8
	JSON  string
	Roots []Root
}

// Root is `client.root`.
type Root struct {
	URI  string
	Name string
}

// List and Serve are the exports of the plugin. The SDK sets them when tools are registered.
// Outcome converts the result of a function for the host; tests need it for the tools that they
// define.
var (
	List    func() []Definition
	Serve   func(name, arguments string) ([]Content, *Failure)
	Outcome func(output any, err error) ([]Content, *Failure)
)

// Preparations run once when the program is built, after its init functions, if the component
// begins with a snapshot of its memory. They fill what would be made in the first use of each call.
var Preparations []func()
