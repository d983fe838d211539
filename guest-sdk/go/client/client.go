// Package client talks to the caller: an MCP client with its user and its model, or a user at a
// terminal.
//
// Each kind of question needs a grant, which the manifest of the plugin requests:
// `ask = ["form", "sample", "roots"]`. Logging needs none. Many clients cannot answer questions:
// check [CanAsk] first, and work without an answer if it returns false.
//
// Some clients cannot be asked in the middle of a call. For those, the host ends the call when it
// asks, and runs it again from its beginning when it has the answers; earlier questions are then
// answered at once. Therefore do the same each time up to the last question, and cause side effects
// only after it.
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
	"fmt"

	"cofferdam/internal/abi"
	"cofferdam/internal/shown"
)

// JSON is encoded JSON.
type JSON = json.RawMessage

// Kind is a kind of question.
type Kind uint8

const (
	// Form asks for data from the user.
	Form Kind = Kind(abi.AskForm)
	// Sample asks for a message of the client's model.
	Sample Kind = Kind(abi.AskSample)
	// Roots asks for the locations in which the client works.
	Roots Kind = Kind(abi.AskRoots)
)

// Question is a question for [Ask].
type Question struct {
	// Name has 1 to 64 characters from `A-Z a-z 0-9 _ -` and is unique within the call. Some
	// clients show it. The host chooses one if it is empty.
	Name string
	Kind Kind
	// Message tells the user the reason for a form. Never ask for a password or a key: the client
	// shows the input and may store it.
	Message string
	// Schema describes a form: an object whose properties are strings, numbers, booleans, or enums
	// of strings.
	Schema JSON
	// Parameters are those of MCP's `sampling/createMessage`, for a sample.
	Parameters JSON
}

// Reply is the user's reply to a form.
type Reply struct {
	// Outcome is Accepted if the form was filled in.
	Outcome Outcome
	// Form is the filled-in form. Check it, because a client may send anything.
	Form JSON
}

// Outcome is the outcome of a form.
type Outcome uint8

const (
	// Accepted means that the user filled in the form.
	Accepted Outcome = Outcome(abi.Accepted)
	// Declined means that the user declined.
	Declined Outcome = Outcome(abi.Declined)
	// Cancelled means that the user closed the form.
	Cancelled Outcome = Outcome(abi.Cancelled)
)

// Root is a location in which the client works. It is only a name and grants nothing.
type Root struct {
	// URI is for example `file:///home/user/project`.
	URI string
	// Name is the display name; it may be empty.
	Name string
}

// Answer is the answer to a [Question]. The fields for its kind are set. It is untrusted input that
// the host has not checked.
type Answer struct {
	Kind  Kind
	Reply Reply
	// Message is the result of MCP's `sampling/createMessage`.
	Message JSON
	Roots   []Root
}

// Errors of questions. The error's text contains the host's message, if there is one.
var (
	// ErrUnsupported means that the question cannot be asked: the client does not support it, there
	// is not a client, or the caller is another tool.
	ErrUnsupported = shown.New("the client cannot be asked this")
	// ErrDenied means that the plugin has no grant for it. The text names the permission and says
	// how to grant it.
	ErrDenied = shown.New("the plugin may not ask this")
	// ErrInvalid means that the question is invalid.
	ErrInvalid = shown.New("the question is not valid")
	// ErrLimit means that a limit of the host is reached. A call may ask 64 questions in total.
	ErrLimit = shown.New("a limit is met")
	// ErrFailed means that the client did not answer, or that its answer does not match the
	// question.
	ErrFailed = shown.New("the client did not answer")
)

var reasons = [...]error{
	abi.ClientUnsupported: ErrUnsupported,
	abi.ClientDenied:      ErrDenied,
	abi.ClientInvalid:     ErrInvalid,
	abi.ClientLimit:       ErrLimit,
	abi.ClientFailed:      ErrFailed,
}

// refusal is one of the errors above with the host's message.
type refusal struct {
	reason error
	text   string
}

func (err *refusal) Error() string { return err.text }
func (err *refusal) Unwrap() error { return err.reason }

var errMismatch = &refusal{ErrFailed, "the client's answer does not fit the question"}

// CanAsk reports whether questions of this kind are granted and the client can answer them.
func CanAsk(kind Kind) bool {
	return abi.CanAsk(uint8(kind))
}

// AskForm asks the user to fill in a form; see [Question] for message and schema.
func AskForm(message string, schema JSON) (Reply, error) {
	answer, err := one(Question{Kind: Form, Message: message, Schema: schema})
	return answer.Reply, err
}

// AskModel asks the client's model with one prompt and returns the text of its answer.
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

// AskRoots asks for the locations in which the client works.
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

// Ask asks several questions at once and returns the answers in the same order. With an error it
// returns no answers.
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

// Read decodes the filled-in form as [json.Unmarshal] does. It returns false if the user did not
// fill in the form.
func (reply Reply) Read(form any) (accepted bool, err error) {
	if reply.Outcome != Accepted {
		return false, nil
	}
	if err := json.Unmarshal(reply.Form, form); err != nil {
		return false, fmt.Errorf("the form was filled in with something else: %w", err)
	}
	return true, nil
}

// TextOf returns the text of a model's message: of its only item, or of several items joined by
// line breaks. It returns false if there is no text.
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
