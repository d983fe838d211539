package tests

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"cofferdam"
	"cofferdam/client"
	"cofferdam/cofferdamtest"
	"cofferdam/files"
	"cofferdam/nethttp"
	"cofferdam/secrets"
	"cofferdam/toolbox"
)

type line struct {
	SKU      string `json:"sku"`
	Quantity int64  `json:"quantity" default:"1"`
}

type order struct {
	Lines  []line           `json:"lines"`
	Status string           `json:"status" enum:"open,paid" default:"open"`
	Note   *string          `json:"note"`
	Extra  map[string]int64 `json:"extra,omitempty"`
}

type failing struct {
	Kind string `json:"kind"`
}

func fail(_ *cofferdam.Call, in failing) (string, error) {
	switch in.Kind {
	case "wrapped":
		return "", fmt.Errorf("outside: %w", cofferdam.Failf("inside %d", 1).Suggest("do %s", "that"))
	case "value":
		return "", &cofferdam.Failure{Message: "m", Retry: cofferdam.RetryMayHelp, Value: []int{1}}
	default:
		return "", errors.New("plain")
	}
}

// run is the function of a tool that needs a host.
var run func(*cofferdam.Call) (any, error)

func init() {
	cofferdam.Register(
		cofferdam.Tool("order", "Returns an order.", func(_ *cofferdam.Call, in order) (order, error) { return in, nil }),
		cofferdam.Tool("fail", "Fails.", fail),
		cofferdam.Tool("run", "Runs.", func(call *cofferdam.Call, _ cofferdam.None) (any, error) { return run(call) }),
	)
}

func called(t *testing.T, tool, arguments, expected string) {
	t.Helper()
	value, err := cofferdamtest.Call(tool, arguments)
	if err != nil {
		value = err.Error()
	}
	check(t, value, expected)
}

func TestArgumentsAreFilledIn(t *testing.T) {
	called(t, "order", `{"lines": [{"sku": "a"}, {"sku": "b", "quantity": 9223372036854775807}], "note": null, "x": 1}`,
		`{"lines":[{"sku":"a","quantity":1},{"sku":"b","quantity":9223372036854775807}],"status":"open","note":null}`)
	called(t, "order", `{"lines": [{"sku": "<é>", "quantity": null}], "status": "paid", "note": "", "extra": {"k": 0}}`,
		`{"lines":[{"sku":"<é>","quantity":1}],"status":"paid","note":"","extra":{"k":0}}`)
}

func TestArgumentsThatDoNotFitAreRefused(t *testing.T) {
	called(t, "order", `{}`, "Required argument 'lines' was not supplied to 'order'.")
	called(t, "order", `{"lines": [{}]}`, "Required argument 'lines[0].sku' was not supplied to 'order'.")
	called(t, "order", `{"lines": [], "status": "lost"}`,
		`Argument 'status' of 'order' is "lost" and has to be one of "open", "paid".`)
	called(t, "order", `{"lines": "no"}`, "Argument 'lines' of 'order' cannot be used: it is string.")
	called(t, "order", `[]`, "Arguments for 'order' are not a JSON object.")
	called(t, "nosuch", `{}`, "there is no tool `nosuch`; an init function has to register it")
}

func TestErrorsAreFailures(t *testing.T) {
	failure := func(kind string) cofferdam.Failure {
		_, err := cofferdamtest.Call("fail", map[string]string{"kind": kind})
		var failure *cofferdam.Failure
		if !errors.As(err, &failure) {
			t.Fatalf("%v is not a failure", err)
		}
		return *failure
	}
	check(t, failure("plain").Message, "*errors.errorString: plain")
	wrapped := failure("wrapped")
	check(t, wrapped.Message+"/"+wrapped.Suggestion, "outside: inside 1/do that")
	value := failure("value")
	check(t, fmt.Sprintf("%s %d %s", value.Message, value.Retry, value.Value), "m 1 [1]")
}

// on runs a function as a tool with a host.
func on(t *testing.T, host *cofferdamtest.Host, function func(*cofferdam.Call) (any, error)) string {
	t.Helper()
	run = function
	value, err := host.Call("run", nil)
	if err != nil {
		return "failure: " + err.Error()
	}
	return value
}

func TestResults(t *testing.T) {
	result := func(output any) string {
		return on(t, &cofferdamtest.Host{}, func(*cofferdam.Call) (any, error) { return output, nil })
	}
	check(t, result("a\"b"), `"a\"b"`)
	check(t, result(cofferdam.None{}), "null")
	check(t, result(nil), "null")
	check(t, result(1e300), "1e+300")
	check(t, result(cofferdam.Blob{MediaType: "image/png", Data: []byte{1}}), `{"media_type":"image/png","bytes":1}`)
	check(t, result([]cofferdam.Content{
		cofferdam.Text("t"), cofferdam.JSON{Value: 1}, cofferdam.Link{URI: "u:", Name: "n"},
		cofferdam.Resource{URI: "r:", Text: "x"},
	}), `["t",1,{"uri":"u:","name":"n"},{"uri":"r:","text":"x"}]`)
	check(t, result([]cofferdam.Content{nil}), "failure: *errors.errorString: a result has an item that is nil")
	check(t, result(make(chan int)), "failure: *json.UnsupportedTypeError: json: unsupported type: chan int")
}

func TestTheCall(t *testing.T) {
	host := &cofferdamtest.Host{Session: "s", TimeLeft: time.Second, Cancelled: true}
	check(t, on(t, host, func(call *cofferdam.Call) (any, error) {
		call.Progress(1, 2, "half")
		_, hasDeadline := call.Deadline()
		return []any{call.ID(), call.Session(), call.TimeLeft(), hasDeadline, call.Err() == context.Canceled}, nil
	}), `["test","s",1000000000,true,true]`)
	check(t, fmt.Sprint(host.Progress), "[{1 2 half}]")
	check(t, on(t, &cofferdamtest.Host{}, func(call *cofferdam.Call) (any, error) {
		_, hasDeadline := call.Deadline()
		return []any{hasDeadline, call.Err() == nil, call.Session()}, nil
	}), `[false,true,""]`)
}

func TestFiles(t *testing.T) {
	host := &cofferdamtest.Host{Files: map[string]map[string]string{
		"data": {"a.txt": "Needle\nhay", "d/b.md": "needle"}, "fixed": {},
	}, ReadOnly: []string{"fixed"}}
	data := files.Open("data")
	check(t, on(t, host, func(*cofferdam.Call) (any, error) {
		err := data.Create("d/e/new.txt", []byte("x"))
		listed, _ := data.List("")
		found, _ := data.Find("d", "*.txt")
		hits, _ := data.Search("", files.Query{Pattern: "needle"})
		part, _ := data.ReadRange("a.txt", 7, 2)
		return []any{err, listed, found, hits, string(part), files.Stores()}, nil
	}), `[null,[{"Name":"d","IsDirectory":true},{"Name":"a.txt","IsDirectory":false}],
		[{"Name":"e/new.txt","IsDirectory":false}],
		{"Matches":[{"Path":"a.txt","Snippet":"Needle","Lines":[{"Number":1,"Text":"Needle"}]},
		{"Path":"d/b.md","Snippet":"needle","Lines":[{"Number":1,"Text":"needle"}]}],"Truncated":false},"ha",
		[{"Name":"data","Writable":true},{"Name":"fixed","Writable":false}]]`)
	refused := map[string]func() error{
		"stat `x`: not found":                          func() error { _, err := data.Stat("x"); return err },
		"create `a.txt`: it exists already":            func() error { return data.Create("a.txt", nil) },
		"read `../x`: `../x` is not a path in a store": func() error { _, err := data.Read("../x"); return err },
		"delete `x`: the store may only be read":       func() error { return files.Open("fixed").Delete("x") },
		"list in the store `no`: no store of that name was granted": func() error {
			_, err := files.Open("no").List("")
			return err
		},
	}
	kinds := map[string]error{"stat": fs.ErrNotExist, "create": fs.ErrExist, "read": fs.ErrInvalid, "delete": fs.ErrPermission, "list": fs.ErrNotExist}
	for expected, operation := range refused {
		check(t, on(t, host, func(*cofferdam.Call) (any, error) {
			err := operation()
			if kind := kinds[strings.Fields(expected)[0]]; !errors.Is(err, kind) {
				t.Errorf("%v is not %v", err, kind)
			}
			return nil, err
		}), "failure: "+expected)
	}
	check(t, on(t, host, func(*cofferdam.Call) (any, error) {
		return nil, errors.Join(data.Replace("a.txt", []byte("changed")), errors.New("no"))
	}), "failure: *errors.joinError: no")
	check(t, host.Files["data"]["a.txt"], "Needle\nhay")
}

func TestSecretsAndTools(t *testing.T) {
	host := &cofferdamtest.Host{
		Secrets: map[string]string{"token": "abc"},
		Tools: map[string]func(json.RawMessage) (any, error){
			"twice": func(arguments json.RawMessage) (any, error) { return []json.RawMessage{arguments, arguments}, nil },
			"sad":   func(json.RawMessage) (any, error) { return nil, cofferdam.Failf("no").Suggest("yes") },
		},
	}
	check(t, on(t, host, func(*cofferdam.Call) (any, error) {
		token, granted := secrets.Get("token")
		_, other := secrets.Get("other")
		var twice []map[string]int
		err := toolbox.Call("twice", map[string]int{"n": 1}, &twice)
		return []any{token, granted, other, twice, err, len(toolbox.List())}, nil
	}), `["abc",true,false,[{"n":1},{"n":1}],null,2]`)
	check(t, on(t, host, func(*cofferdam.Call) (any, error) {
		var failure *cofferdam.Failure
		err := toolbox.Call("sad", nil, new(any))
		if !errors.As(err, &failure) || failure.Suggestion != "yes" {
			t.Errorf("%v is no such failure", err)
		}
		_, err = toolbox.Contents("nosuch", nil)
		return errors.Is(err, toolbox.ErrUnknown), nil
	}), "true")
}

func TestQuestions(t *testing.T) {
	host := &cofferdamtest.Host{Answer: func(question client.Question) (client.Answer, error) {
		switch question.Kind {
		case client.Form:
			return client.Answer{Reply: client.Reply{Form: client.JSON(`{"really": true}`)}}, nil
		case client.Sample:
			return client.Answer{Message: client.JSON(`{"content": [{"text": "a"}, {"type": "image"}, {"text": "b"}]}`)}, nil
		default:
			return client.Answer{}, client.ErrDenied
		}
	}}
	check(t, on(t, host, func(*cofferdam.Call) (any, error) {
		client.Warningf("mind the %s", "gap")
		reply, err := client.AskForm("Really?", client.JSON(`{}`))
		var form struct{ Really bool }
		accepted, wrong := reply.Read(&form)
		text, failed := client.AskModel("Say ab.", 10)
		_, denied := client.AskRoots()
		return []any{err, accepted, wrong, form, text, failed, errors.Is(denied, client.ErrDenied)}, nil
	}), `[null,true,null,{"Really":true},"a\nb",null,true]`)
	check(t, fmt.Sprint(host.Log), "[{3 mind the gap}]")
	check(t, on(t, &cofferdamtest.Host{}, func(*cofferdam.Call) (any, error) {
		_, err := client.AskRoots()
		return []any{client.CanAsk(client.Form), errors.Is(err, client.ErrUnsupported)}, nil
	}), "[false,true]")
}

func TestOfJoinedErrorsOnlyThatForTheModelIsShown(t *testing.T) {
	missing := &files.Error{Operation: "read", Path: "x", Reason: files.NotFound}
	for expected, err := range map[string]error{
		"public":              errors.Join(errors.New("s3cret"), cofferdam.Failf("public")),
		"wrapped":             fmt.Errorf("s3cret: %w", errors.Join(errors.New("other"), cofferdam.Failf("wrapped"))),
		"inner":               errors.Join(errors.New("s3cret"), fmt.Errorf("outside: %w", cofferdam.Failf("inner"))),
		"two":                 fmt.Errorf("%w %w", errors.New("s3cret"), cofferdam.Failf("two")),
		"read `x`: not found": errors.Join(errors.New("s3cret"), missing),
	} {
		check(t, on(t, &cofferdamtest.Host{}, func(*cofferdam.Call) (any, error) { return nil, err }), "failure: "+expected)
	}
}

func TestOnlyErrorsForTheModelAreShown(t *testing.T) {
	for expected, err := range map[string]error{
		"*fs.PathError: open x: file does not exist":         &fs.PathError{Op: "open", Path: "x", Err: fs.ErrNotExist},
		"*fs.PathError: read: open x: permission denied":     fmt.Errorf("read: %w", &fs.PathError{Op: "open", Path: "x", Err: fs.ErrPermission}),
		"later: read `x`: not found":                         fmt.Errorf("later: %w", &files.Error{Operation: "read", Path: "x", Reason: files.NotFound}),
		"a: no":                                              &nethttp.Error{Reason: nethttp.Denied, Host: "a", Detail: "a: no"},
		"*nethttp.Error: a: gone":                            &nethttp.Error{Reason: nethttp.Closed, Host: "a", Detail: "a: gone"},
		"no tool of that name was granted":                   toolbox.ErrUnknown,
		"the tool that was called ended as Trap.Unreachable": &toolbox.EndedError{Type: "Trap.Unreachable"},
		"the client cannot be asked this":                    client.ErrUnsupported,
		"outside: inside":                                    fmt.Errorf("outside: %w", cofferdam.Failf("inside")),
	} {
		check(t, on(t, &cofferdamtest.Host{}, func(*cofferdam.Call) (any, error) { return nil, err }), "failure: "+expected)
	}
}
