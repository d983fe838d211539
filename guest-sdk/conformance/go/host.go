package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"unicode/utf8"

	"cofferdam"
	"cofferdam/client"
	"cofferdam/files"
	"cofferdam/secrets"
	"cofferdam/toolbox"
)

type storing struct {
	Store string `json:"store" description:"The name of the store."`
	Path  string `json:"path" description:"The path of the new file."`
	Text  string `json:"text" description:"What is written."`
}

type stored struct {
	Text  string   `json:"text"`
	Size  uint64   `json:"size"`
	Files []string `json:"files"`
	Lines []uint64 `json:"lines"`
}

func store(_ *cofferdam.Call, in storing) (*stored, error) {
	store := files.Open(in.Store)
	if err := store.Create(in.Path, []byte(in.Text)); err != nil {
		return nil, err
	}
	content, err := store.Read(in.Path)
	if err != nil {
		return nil, err
	}
	stat, err := store.Stat(in.Path)
	if err != nil {
		return nil, err
	}
	entries, err := store.Find("", "")
	if err != nil {
		return nil, err
	}
	found, err := store.Search("", files.Query{Pattern: "needle", CaseSensitive: true})
	if err != nil {
		return nil, err
	}
	result := &stored{Text: string(content), Size: stat.Size, Files: []string{}, Lines: []uint64{}}
	for _, entry := range entries {
		result.Files = append(result.Files, entry.Name)
	}
	slices.Sort(result.Files)
	for _, match := range found.Matches {
		if match.Path != in.Path {
			continue
		}
		for _, line := range match.Lines {
			result.Lines = append(result.Lines, line.Number)
		}
	}
	return result, nil
}

type missed struct {
	Store string `json:"store" description:"The name of the store."`
}

func missing(_ *cofferdam.Call, in missed) (string, error) {
	content, err := files.Open(in.Store).Read("nosuch.txt")
	if errors.Is(err, fs.ErrNotExist) {
		return "not found", nil
	}
	return string(content), err
}

type stepping struct {
	Steps int `json:"steps" description:"How many steps."`
}

type progressed struct {
	HasID       bool `json:"has_id"`
	HasTimeLeft bool `json:"has_time_left"`
	Cancelled   bool `json:"cancelled"`
}

func progress(call *cofferdam.Call, in stepping) (progressed, error) {
	for step := 1; step <= in.Steps; step++ {
		call.Progress(float64(step), float64(in.Steps), fmt.Sprintf("step %d", step))
	}
	return progressed{call.ID() != "", call.TimeLeft() > 0, call.Cancelled()}, nil
}

type logging struct {
	Message string `json:"message" description:"What is said."`
}

func log(_ *cofferdam.Call, in logging) (cofferdam.None, error) {
	client.Log(client.LevelWarning, in.Message)
	fmt.Fprintln(os.Stderr, in.Message, "(printed)")
	return cofferdam.None{}, nil
}

type relayed struct {
	Tool      string                     `json:"tool" description:"The name of the tool."`
	Arguments map[string]json.RawMessage `json:"arguments" description:"Its arguments."`
}

func relay(_ *cofferdam.Call, in relayed) (json.RawMessage, error) {
	var value json.RawMessage
	err := toolbox.Call(in.Tool, in.Arguments, &value)
	if errors.Is(err, toolbox.ErrUnknown) {
		return nil, cofferdam.Failf("there is no tool `%s`", in.Tool)
	}
	return value, err
}

type secretive struct {
	Name string `json:"name" description:"The name of the secret."`
}

func secret(_ *cofferdam.Call, in secretive) (int, error) {
	value, granted := secrets.Get(in.Name)
	if !granted {
		return 0, cofferdam.Failf("access denied")
	}
	return utf8.RuneCountInString(value), nil
}
