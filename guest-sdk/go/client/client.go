// Package client talks to the one who made the call: an MCP client with its person and its model, or a person at a terminal.
//
// Each kind of question needs a grant, which the manifest of the plugin asks for: `ask = ["form", "sample", "roots"]`. Logging
// needs none. Many clients can be asked nothing: look first with [CanAsk], and do without.
//
// Some clients cannot be asked in the middle of a call. For those the host ends the call when it asks, and runs it again from
// its beginning when the answers are there; earlier questions are then answered at once. So do the same up to the last
// question each time, and act afterwards.
//
//	reply, err := client.AskForm("Delete all 12 notes?", client.JSON(`{"type": "object",
//		"properties": {"really": {"type": "boolean"}}, "required": ["really"]}`))
//	if err != nil {
//		return "", err
//	}
//	var form struct{ Really bool }
//	if accepted, err := reply.Read(&form); err != nil || !accepted || !form.Really {
//		return "nothing was deleted", err
//	}
package client

import (
	"encoding/json"
	"errors"
	"fmt"

	"cofferdam/internal/abi"
)

// JSON is JSON text.
type JSON = json.RawMessage

// Kind says what can be asked for.
type Kind uint8

const (
	// Form is data from a person.
	Form Kind = Kind(abi.AskForm)
	// Sample is a message of the client's model.
	Sample Kind = Kind(abi.AskSample)
	// Roots are the places that the client works in.
	Roots Kind = Kind(abi.AskRoots)
)

// Question is one for [Ask].
type Question struct {
	// Name has 1 to 64 characters out of `A-Z a-z 0-9 _ -` and is unique within the call. Some clients show it. The host finds
	// one where it is empty.
	Name string
	Kind Kind
	// Message says to the person why a form is asked for. Never ask for a password or a key: the client shows and may keep what
	// is typed.
	Message string
	// Schema is that of a form: an object whose properties are texts, numbers, truth values, or choices of texts.
	Schema JSON
	// Parameters are those of MCP's `sampling/createMessage`, for a sample.
	Parameters JSON
}

// Reply is what a person made of a form.
type Reply struct {
	// Outcome says whether it was filled in.
	Outcome Outcome
	// Form is what was filled in. Nothing has checked it: a client may send anything.
	Form JSON
}

// Outcome of a form.
type Outcome uint8

const (
	// Accepted: it was filled in.
	Accepted Outcome = Outcome(abi.Accepted)
	// Declined: the person said no.
	Declined Outcome = Outcome(abi.Declined)
	// Cancelled: the person closed the form.
	Cancelled Outcome = Outcome(abi.Cancelled)
)

// Root is a place that the client works in. It is a name, and grants nothing.
type Root struct {
	// URI is for example `file:///home/user/project`.
	URI string
	// Name is what to call it; it may be empty.
	Name string
}

// Answer is one to a [Question]: what belongs to its kind is set. It comes from outside and nothing has checked it.
type Answer struct {
	Kind  Kind
	Reply Reply
	// Message is the result of MCP's `sampling/createMessage`.
	Message JSON
	Roots   []Root
}

// Why there are no answers. The text of the error says more where the host did.
var (
	// ErrUnsupported: nobody can be asked this: the client has no such thing, there is no client, or the caller is another tool.
	ErrUnsupported = errors.New("the client cannot be asked this")
	// ErrDenied: the plugin has no grant for it. The text names the permission and says how to grant it.
	ErrDenied = errors.New("the plugin may not ask this")
	// ErrInvalid: the question is not one.
	ErrInvalid = errors.New("the question is not valid")
	// ErrLimit: a limit of the host. A call may ask 64 questions in all.
	ErrLimit = errors.New("a limit is met")
	// ErrFailed: the client was asked and did not answer, or not with an answer to the question.
	ErrFailed = errors.New("the client did not answer")
)

var reasons = [...]error{
	abi.ClientUnsupported: ErrUnsupported,
	abi.ClientDenied:      ErrDenied,
	abi.ClientInvalid:     ErrInvalid,
	abi.ClientLimit:       ErrLimit,
	abi.ClientFailed:      ErrFailed,
}

// refusal is one of the errors above with the host's words.
type refusal struct {
	reason error
	text   string
}

func (err *refusal) Error() string { return err.text }
func (err *refusal) Unwrap() error { return err.reason }

var errMismatch = &refusal{ErrFailed, "the client's answer is none to the question"}

// CanAsk says whether questions of this kind are granted and the client can answer them.
func CanAsk(kind Kind) bool {
	return abi.CanAsk(uint8(kind))
}

// AskForm asks a person to fill in a form; see [Question] for message and schema.
func AskForm(message string, schema JSON) (Reply, error) {
	answer, err := one(Question{Kind: Form, Message: message, Schema: schema})
	return answer.Reply, err
}

// AskModel asks the client's model one thing and gives the text of its answer.
func AskModel(prompt string, tokensMax int) (string, error) {
	type content struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	type message struct {
		Role    string  `json:"role"`
		Content content `json:"content"`
	}
	parameters, err := json.Marshal(struct {
		Messages  []message `json:"messages"`
		MaxTokens int       `json:"maxTokens"`
	}{[]message{{"user", content{"text", prompt}}}, tokensMax})
	if err != nil {
		return "", err
	}
	answer, err := one(Question{Kind: Sample, Parameters: parameters})
	if err != nil {
		return "", err
	}
	text, is := TextOf(answer.Message)
	if !is {
		return "", errMismatch
	}
	return text, nil
}

// AskRoots asks where the client works.
func AskRoots() ([]Root, error) {
	answer, err := one(Question{Kind: Roots})
	return answer.Roots, err
}

func one(question Question) (Answer, error) {
	answers, err := Ask(question)
	if err != nil {
		return Answer{}, err
	}
	return answers[0], nil
}

// Ask asks several questions at once and gives the answers in the same order. With an error none of them is there.
func Ask(questions ...Question) ([]Answer, error) {
	asked := make([]abi.Question, len(questions))
	for i, question := range questions {
		text := question.Schema
		if question.Kind == Sample {
			text = question.Parameters
		}
		asked[i] = abi.Question{
			Name: question.Name, Kind: uint8(question.Kind), Message: question.Message, JSON: string(text),
		}
	}
	given, refused := abi.Ask(asked)
	if refused != nil {
		return nil, errorOf(refused)
	}
	if len(given) != len(questions) {
		return nil, errMismatch
	}
	answers := make([]Answer, len(given))
	for i, answer := range given {
		answers[i] = answerOf(answer)
		if answers[i].Kind != questions[i].Kind {
			return nil, errMismatch
		}
	}
	return answers, nil
}

func answerOf(answer abi.Answer) Answer {
	switch answer.Case {
	case abi.Message:
		return Answer{Kind: Sample, Message: JSON(answer.JSON)}
	case abi.Roots:
		roots := make([]Root, len(answer.Roots))
		for i, root := range answer.Roots {
			roots[i] = Root{root.URI, root.Name}
		}
		return Answer{Kind: Roots, Roots: roots}
	default:
		return Answer{Kind: Form, Reply: Reply{Outcome(answer.Case), JSON(answer.JSON)}}
	}
}

func errorOf(refused *abi.Error) error {
	reason := ErrFailed
	if int(refused.Case) < len(reasons) {
		reason = reasons[refused.Case]
	}
	if refused.Text == "" {
		return reason
	}
	return &refusal{reason, refused.Text}
}

// Read reads what was filled in, as [json.Unmarshal] does. It is false if the person did not fill the form in.
func (reply Reply) Read(form any) (accepted bool, err error) {
	if reply.Outcome != Accepted {
		return false, nil
	}
	if err := json.Unmarshal(reply.Form, form); err != nil {
		return false, fmt.Errorf("the form was filled in with something else: %w", err)
	}
	return true, nil
}

// TextOf is the text of a model's message: of its one item, or of several items together. It is false if there is no text.
func TextOf(message JSON) (string, bool) {
	type item struct {
		Text *string `json:"text"`
	}
	var one struct{ Content item }
	var several struct{ Content []item }
	items := several.Content
	if json.Unmarshal(message, &several) == nil {
		items = several.Content
	} else if json.Unmarshal(message, &one) == nil {
		items = []item{one.Content}
	}
	text, is := "", false
	for _, item := range items {
		switch {
		case item.Text == nil:
		case is:
			text += "\n" + *item.Text
		default:
			text, is = *item.Text, true
		}
	}
	return text, is
}
