// Package toolbox calls other tools that were granted to the plugin.
//
// A tool that is called runs with its own grants and limits, in a sandbox of its own. What it changes in files belongs to the
// call that made it: if that fails, nothing of it remains. Tools that need a person's approval cannot be called. The manifest
// of the plugin has to ask for each: `tools = ["word_count"]`.
//
//	var counts struct{ Words int }
//	if err := toolbox.Call("word_count", map[string]any{"text": "to be or not to be"}, &counts); err != nil {
//		return nil, err
//	}
package toolbox

import (
	"encoding/json"
	"errors"
	"fmt"

	"cofferdam"
	"cofferdam/internal/abi"
	"cofferdam/internal/answer"
)

// How a call can fail, beside a failure that the tool reports: that is a [*cofferdam.Failure]. Find out with [errors.Is].
var (
	// ErrUnknown: no such tool was granted.
	ErrUnknown = errors.New("no tool of that name was granted")
	// ErrInvalidArguments: the arguments do not fit the tool's schema. The text of the error names every problem.
	ErrInvalidArguments = errors.New("invalid arguments")
	// ErrEnded: the tool ended without an answer: a trap, a limit, a denial. See [EndedError].
	ErrEnded = errors.New("the tool that was called has ended")
	// ErrTooDeep: calls are nested too deeply.
	ErrTooDeep = errors.New("tools call each other too deeply")
)

// InvalidArgumentsError is an [ErrInvalidArguments].
type InvalidArgumentsError struct {
	// Problems names every problem.
	Problems string
}

func (err *InvalidArgumentsError) Error() string        { return err.Problems }
func (err *InvalidArgumentsError) Is(target error) bool { return target == ErrInvalidArguments }

// EndedError is an [ErrEnded].
type EndedError struct {
	// Type is the name of the error type, for example `Trap.Unreachable`.
	Type string
}

func (err *EndedError) Error() string        { return "the tool that was called ended as " + err.Type }
func (err *EndedError) Is(target error) bool { return target == ErrEnded }

// Granted is a tool that was granted.
type Granted struct {
	Name         string
	Title        string
	Description  string
	InputSchema  json.RawMessage
	OutputSchema json.RawMessage
}

// List gives the tools that were granted.
func List() []Granted {
	definitions := abi.Tools()
	tools := make([]Granted, len(definitions))
	for i, it := range definitions {
		tools[i] = Granted{Name: it.Name, Title: it.Title, Description: it.Description}
		tools[i].InputSchema = json.RawMessage(it.InputSchema)
		if it.OutputSchema != "" {
			tools[i].OutputSchema = json.RawMessage(it.OutputSchema)
		}
	}
	return tools
}

// Call calls a tool and reads its value into `result` as [json.Unmarshal] does; a text is a JSON string, nothing is null, and
// several items come as an array. The arguments are what [json.Marshal] makes an object of.
func Call(name string, arguments, result any) error {
	contents, err := call(name, arguments)
	if err != nil {
		return err
	}
	value, err := answer.Value(contents)
	if err != nil {
		return fmt.Errorf("the result of `%s` cannot be read: %w", name, err)
	}
	if err := json.Unmarshal(value, result); err != nil {
		return fmt.Errorf("the result of `%s` is another one than expected: %w", name, err)
	}
	return nil
}

// Contents calls a tool and gives the items of its result.
func Contents(name string, arguments any) ([]cofferdam.Content, error) {
	contents, err := call(name, arguments)
	if err != nil {
		return nil, err
	}
	return answer.Contents(contents), nil
}

func call(name string, arguments any) ([]abi.Content, error) {
	text, err := json.Marshal(arguments)
	if err != nil {
		return nil, fmt.Errorf("the arguments for `%s` cannot be written: %w", name, err)
	}
	contents, failure, failed := abi.CallTool(name, string(text))
	if failed == nil {
		return contents, nil
	}
	switch failed.Case {
	case abi.ToolboxUnknown:
		return nil, ErrUnknown
	case abi.ToolboxInvalidArguments:
		return nil, &InvalidArgumentsError{failed.Text}
	case abi.ToolboxFailed:
		return nil, answer.Failure(failure)
	case abi.ToolboxEnded:
		return nil, &EndedError{failed.Text}
	default:
		return nil, ErrTooDeep
	}
}
