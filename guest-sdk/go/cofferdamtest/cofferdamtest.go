//go:build !wasip1

// Package cofferdamtest calls tools the way the host does, through their JSON face and without a host.
//
//	func TestRepeat(t *testing.T) {
//		value, err := cofferdamtest.Call("repeat", `{"text": "ab"}`)
//		if err != nil || value != `"abab"` {
//			t.Errorf("got %s, %v", value, err)
//		}
//	}
//
// Arguments go through the published schema: defaults are filled in, null and absent are alike, keys that are not declared are
// dropped, and what is missing or no member of an enum is refused. What else the host does with what a model sends (converting
// "2" to 2, checking bounds and patterns) does not happen.
//
// A tool sees what [Host] grants: stores in memory, secrets, other tools, answers to questions. Files that a tool opens with
// package os are those of the machine: pass it the path of a [testing.T.TempDir].
//
// One call at a time: tests that run in parallel would share the host.
package cofferdamtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"cofferdam"
	"cofferdam/client"
	"cofferdam/internal/abi"
	"cofferdam/internal/answer"
)

// Host is what a tool is granted, and what it has said. The zero value grants nothing.
type Host struct {
	// Files are the stores by name, each with its files by path. They may be changed. As with the host, changes of a call that
	// fails are forgotten.
	Files map[string]map[string]string
	// ReadOnly names stores that may only be read.
	ReadOnly []string
	// Secrets by name.
	Secrets map[string]string
	// Tools are other tools. What a function returns is treated like what a tool returns.
	Tools map[string]func(arguments json.RawMessage) (any, error)
	// Answer is asked what a tool asks. Without it nobody can be asked. Its error should be one of package client.
	Answer func(client.Question) (client.Answer, error)
	// Session of the call.
	Session string
	// TimeLeft of the call; without end if it is 0.
	TimeLeft time.Duration
	// Cancelled says whether the caller has given up.
	Cancelled bool

	// Progress is what calls have reported.
	Progress []Progress
	// Log is what calls have said to the client.
	Log []Line
}

// Progress is a report.
type Progress struct {
	Done, Total float64
	Message     string
}

// Line is something said to the client.
type Line struct {
	Level   client.Level
	Message string
}

// Call calls a tool that is granted nothing. See [Host.Call].
func Call(tool string, arguments any) (string, error) {
	return new(Host).Call(tool, arguments)
}

// Call calls a registered tool and gives the value that a model would see, as JSON text: null, a text, or a JSON value; several
// items come as an array, a blob as its media type and its length.
//
// The arguments are JSON text (a string, []byte or [json.RawMessage]), or what [json.Marshal] makes an object of. The error is
// the failure that the tool reports, always a [*cofferdam.Failure], or says what is wrong with the arguments.
func (host *Host) Call(tool string, arguments any) (string, error) {
	contents, err := host.serve(tool, arguments)
	if err != nil {
		return "", err
	}
	value, err := answer.Value(contents)
	return string(value), err
}

// Contents calls a registered tool and gives the items of its result. See [Host.Call].
func (host *Host) Contents(tool string, arguments any) ([]cofferdam.Content, error) {
	contents, err := host.serve(tool, arguments)
	if err != nil {
		return nil, err
	}
	return answer.Contents(contents), nil
}

// Definition is what a tool publishes.
type Definition struct {
	Name         string
	Title        string
	Description  string
	InputSchema  string
	OutputSchema string
}

// Definitions gives what the plugin publishes. It panics where the host would refuse to install the plugin because of a type
// that has no form in JSON, so call it in a test.
func Definitions() []Definition {
	var all []Definition
	for _, it := range definitions() {
		all = append(all, Definition{it.Name, it.Title, it.Description, it.InputSchema, it.OutputSchema})
	}
	return all
}

func definitions() []abi.Definition {
	if abi.List == nil {
		return nil
	}
	return abi.List()
}

// serving: the SDK has one host at a time.
var serving sync.Mutex

func (host *Host) serve(tool string, arguments any) ([]abi.Content, error) {
	serving.Lock()
	defer serving.Unlock()
	text, err := textOf(arguments)
	if err != nil {
		return nil, err
	}
	for _, definition := range definitions() {
		if definition.Name != tool {
			continue
		}
		decoded, err := decode(tool, definition.InputSchema, text)
		if err != nil {
			return nil, err
		}
		return host.run(tool, decoded)
	}
	return nil, fmt.Errorf("there is no tool `%s`; an init function has to register it", tool)
}

func (host *Host) run(tool, arguments string) ([]abi.Content, error) {
	before := make(map[string]map[string]string, len(host.Files))
	for name, files := range host.Files {
		before[name] = maps.Clone(files)
	}
	abi.Native = &native{Host: host}
	defer func() { abi.Native = abi.Nobody{} }()
	contents, failure := abi.Serve(tool, arguments)
	if failure != nil {
		host.Files = before
		return nil, answer.Failure(failure)
	}
	return contents, nil
}

func textOf(arguments any) ([]byte, error) {
	switch arguments := arguments.(type) {
	case nil:
		return []byte("{}"), nil
	case string:
		return []byte(arguments), nil
	case []byte:
		return arguments, nil
	default:
		text, err := json.Marshal(arguments)
		if err != nil {
			return nil, errors.Join(errors.New("the arguments cannot be written as JSON"), err)
		}
		return text, nil
	}
}
