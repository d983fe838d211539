package cofferdam

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"cofferdam/internal/abi"
)

// None is the input of a tool without parameters, or the output of a tool whose answer is null.
type None struct{}

// Function is a tool of a plugin. [Tool] makes one.
type Function struct {
	name        string
	title       string
	description string
	annotations abi.Annotations
	input       reflect.Type
	output      reflect.Type
	hasOutput   bool
	run         func(arguments string) ([]abi.Content, error)
}

// Option says more about a tool.
type Option func(*Function)

// Tool makes a tool of a function. The name has 1 to 128 characters out of `A-Z a-z 0-9 _ . -` and is unique within the plugin.
// The description is for the model, which knows nothing else of the tool: what it does and when to use it, in at most 4096
// bytes.
//
// # Parameters
//
// The exported fields of the struct Input are the parameters, named by their json tags as in [encoding/json].
//
//	field                                the model may
//	Name T                               not leave it out
//	Name T `default:"…"`                 leave it out or send null: the default
//	Name *T                              leave it out or send null: nil
//	Name T `json:"name,omitempty"`       leave it out: the zero value (omitzero is the same)
//
// Further tags are part of what the model sees and of what the host checks before the tool runs:
//
//	description:"What it is."            the more exact, the better the calls
//	default:"3"                          JSON, or the text itself where the field is one
//	enum:"open,paid"                     the texts that are allowed; of a slice, for its items
//	minimum:"1" maximum:"100"            for numbers
//
// T is a bool, a number, a string, a slice, an array, a map with string keys, or a struct of those. []byte is text in base64,
// [encoding/json.RawMessage] and any take every value (any loses digits of large integers), [time.Time] is a text as in RFC
// 3339, a type that implements [encoding.TextUnmarshaler] is a text, and a type that implements [Schemer] says itself what it
// is. What has no form in JSON ends the program with a panic that names the field when the plugin is installed or tested.
//
// # Results
//
//	Output                               result
//	string                               a text
//	None                                 null
//	Content and what implements it       just that
//	[]Content                            all of these
//	any other type, or a pointer to it   a JSON value; a nil slice is null in JSON
//
// An error is a failure with the error's text: see [Failure]. A panic ends the program, and all that the model learns is that
// it has ended: return errors for what can go wrong.
func Tool[Input, Output any](
	name, description string, function func(*Call, Input) (Output, error), options ...Option,
) *Function {
	tool := &Function{
		name:        name,
		description: description,
		input:       reflect.TypeFor[Input](),
		output:      reflect.TypeFor[Output](),
	}
	tool.run = func(arguments string) ([]abi.Content, error) {
		input := new(Input)
		if err := tool.decode(arguments, input); err != nil {
			return nil, err
		}
		output, err := function(&Call{}, *input)
		if err != nil {
			return nil, err
		}
		return contentsOf(output)
	}
	for _, option := range options {
		option(tool)
	}
	return tool
}

// Title is a short name for people.
func Title(title string) Option {
	return func(tool *Function) { tool.title = title }
}

// ReadOnly says whether the tool changes nothing. This and the options below are hints for whoever decides about a call; they
// grant nothing, and what is not said is unknown.
func ReadOnly(is bool) Option {
	return func(tool *Function) { tool.annotations.ReadOnly = &is }
}

// Destructive says whether the tool may destroy something: delete, overwrite, send.
func Destructive(is bool) Option {
	return func(tool *Function) { tool.annotations.Destructive = &is }
}

// Idempotent says whether calling twice with the same arguments changes nothing more.
func Idempotent(is bool) Option {
	return func(tool *Function) { tool.annotations.Idempotent = &is }
}

// OpenWorld says whether the tool reaches things outside the host, such as the network.
func OpenWorld(is bool) Option {
	return func(tool *Function) { tool.annotations.OpenWorld = &is }
}

// LongRunning says whether the tool may take minutes.
func LongRunning(is bool) Option {
	return func(tool *Function) { tool.annotations.LongRunning = &is }
}

// OutputSchema publishes the schema of the output type. The host checks each result against it: slices and maps may be null
// there, a pointer that is returned may not.
func OutputSchema() Option {
	return func(tool *Function) { tool.hasOutput = true }
}

// registered are the tools in the order of their registration.
var registered []*Function

// Register adds tools to the plugin: at most 128, with unique names. Call it in an init function.
func Register(tools ...*Function) {
	registered = append(registered, tools...)
	abi.List, abi.Serve, abi.Outcome = definitions, serve, outcome
}

// definitions makes the schemas. Nothing of that happens before a call.
func definitions() []abi.Definition {
	all := make([]abi.Definition, len(registered))
	for i, tool := range registered {
		all[i] = tool.definition()
	}
	return all
}

// InputSchema is the JSON Schema of the tool's arguments. It panics if a type has no form in JSON.
func (tool *Function) InputSchema() string {
	return inputSchema(tool.name, tool.input)
}

func (tool *Function) definition() abi.Definition {
	definition := abi.Definition{
		Name:        tool.name,
		Title:       tool.title,
		Description: tool.description,
		InputSchema: tool.InputSchema(),
		Annotations: tool.annotations,
	}
	if tool.hasOutput {
		definition.OutputSchema = outputSchema(tool.name, tool.output)
	}
	return definition
}

func serve(name, arguments string) ([]abi.Content, *abi.Failure) {
	for _, tool := range registered {
		if tool.name != name {
			continue
		}
		contents, err := tool.run(arguments)
		if err != nil {
			return nil, failureOf(err)
		}
		return contents, nil
	}
	return nil, failureOf(Failf("there is no tool `%s`", name))
}

// outcome is what the host gets for what a function returned.
func outcome(output any, err error) ([]abi.Content, *abi.Failure) {
	var contents []abi.Content
	if err == nil {
		contents, err = contentsOf(output)
	}
	if err != nil {
		return nil, failureOf(err)
	}
	return contents, nil
}

// decode fills in what the model sent. The host has checked it and filled in the defaults, so nothing here should fail. A host
// that breaks its word gets a failure in words.
func (tool *Function) decode(arguments string, input any) error {
	err := json.Unmarshal([]byte(arguments), input)
	var wrongType *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrongType) && wrongType.Field != "":
		err = fmt.Errorf("Argument '%s' of '%s' cannot be used: it is %s", wrongType.Field, tool.name, wrongType.Value)
	default:
		err = fmt.Errorf("Arguments for '%s' cannot be used: %w", tool.name, err)
	}
	return &Failure{Message: err.Error() + ".", Retry: RetryCannotHelp}
}
