//go:build !wasip1

package cofferdamtest

import (
	"errors"
	"math"
	"slices"

	"cofferdam/client"
	"cofferdam/internal/abi"
)

// native implements the imports of a call. Its other methods are those of abi.Nobody.
type native struct {
	abi.Nobody
	*Host
}

func (*native) CallID() string {
	return "test"
}

func (it *native) CallSession() string {
	return it.Session
}

func (it *native) TimeLeft() uint64 {
	if it.Host.TimeLeft == 0 {
		return math.MaxInt64
	}
	return uint64(max(it.Host.TimeLeft.Milliseconds(), 0))
}

func (it *native) CallCancelled() bool {
	return it.Cancelled
}

func (it *native) Progress(done, total float64, message string) {
	it.Host.Progress = append(it.Host.Progress, Progress{done, total, message})
}

func (it *native) Log(level uint8, message string) {
	it.Host.Log = append(it.Host.Log, Line{client.Level(level), message})
}

func (it *native) Secret(name string) (string, bool) {
	value, is := it.Secrets[name]
	return value, is
}

func (it *native) Tools() []abi.Definition {
	var all []abi.Definition
	for name := range it.Host.Tools {
		all = append(all, abi.Definition{Name: name, InputSchema: `{"type":"object"}`})
	}
	slices.SortFunc(all, func(a, b abi.Definition) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return all
}

func (it *native) CallTool(name, arguments string) ([]abi.Content, *abi.Failure, *abi.Error) {
	tool, is := it.Host.Tools[name]
	if !is {
		return nil, nil, &abi.Error{Case: abi.ToolboxUnknown}
	}
	output, err := tool([]byte(arguments))
	contents, failure := abi.Outcome(output, err)
	if failure != nil {
		return nil, failure, &abi.Error{Case: abi.ToolboxFailed}
	}
	return contents, nil, nil
}

func (it *native) CanAsk(uint8) bool {
	return it.Answer != nil
}

var reasons = []error{
	abi.ClientUnsupported: client.ErrUnsupported,
	abi.ClientDenied:      client.ErrDenied,
	abi.ClientInvalid:     client.ErrInvalid,
	abi.ClientLimit:       client.ErrLimit,
	abi.ClientFailed:      client.ErrFailed,
}

func (it *native) Ask(questions []abi.Question) ([]abi.Answer, *abi.Error) {
	if it.Answer == nil {
		return nil, &abi.Error{Case: abi.ClientUnsupported}
	}
	answers := make([]abi.Answer, len(questions))
	for i, asked := range questions {
		question := client.Question{Name: asked.Name, Kind: client.Kind(asked.Kind), Message: asked.Message}
		if question.Kind == client.Sample {
			question.Parameters = client.JSON(asked.JSON)
		} else {
			question.Schema = client.JSON(asked.JSON)
		}
		given, err := it.Answer(question)
		if err != nil {
			return nil, refusalOf(err)
		}
		answers[i] = answerOf(question.Kind, given)
	}
	return answers, nil
}

func refusalOf(err error) *abi.Error {
	for is, reason := range reasons {
		if errors.Is(err, reason) {
			return &abi.Error{Case: uint8(is), Text: err.Error()}
		}
	}
	return &abi.Error{Case: abi.ClientFailed, Text: err.Error()}
}

func answerOf(kind client.Kind, given client.Answer) abi.Answer {
	switch kind {
	case client.Sample:
		return abi.Answer{Case: abi.Message, JSON: string(given.Message)}
	case client.Roots:
		roots := make([]abi.Root, len(given.Roots))
		for i, root := range given.Roots {
			roots[i] = abi.Root{URI: root.URI, Name: root.Name}
		}
		return abi.Answer{Case: abi.Roots, Roots: roots}
	default:
		return abi.Answer{Case: uint8(given.Reply.Outcome), JSON: string(given.Reply.Form)}
	}
}
