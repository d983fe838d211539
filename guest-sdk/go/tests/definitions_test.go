package tests

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"cofferdam"
	"cofferdam/cofferdamtest"
)

type site struct {
	Latitude  float64 `json:"latitude" minimum:"-90" maximum:"90"`
	Longitude float64 `json:"longitude"`
}

type tree struct {
	Name     string `json:"name"`
	Children []tree `json:"children"`
}

type color string

func (color) JSONSchema() string { return `{"type":"string","pattern":"^#[0-9a-f]{6}$"}` }

type everything struct {
	site
	Text      string            `json:"text" description:"A \"text\"."`
	Untagged  bool              //
	Small     int8              `json:"small"`
	Count     uint16            `json:"count" default:"3"`
	Word      string            `json:"word" default:"abc"`
	Number    string            `json:"number" default:"12"`
	Left      string            `json:"left,omitempty"`
	Maybe     *string           `json:"maybe" enum:"a,b"`
	Choices   []string          `json:"choices" enum:"x,y"`
	Pair      [2]float64        `json:"pair"`
	ByName    map[string]int    `json:"by_name"`
	Bytes     []byte            `json:"bytes"`
	When      time.Time         `json:"when"`
	Any       any               `json:"any"`
	Raw       json.RawMessage   `json:"raw"`
	Color     color             `json:"color"`
	Nested    *site             `json:"nested"`
	Hidden    string            `json:"-"`
	unexposed map[string]string //nolint:unused
}

func unused[Input, Output any](*cofferdam.Call, Input) (output Output, err error) { return }

func init() {
	cofferdam.Register(
		cofferdam.Tool("everything", "All kinds of fields.", unused[everything, cofferdam.None]),
		cofferdam.Tool("trees", "A type that contains itself.", unused[tree, tree], cofferdam.OutputSchema()),
		cofferdam.Tool("forest", "The same, further in.", unused[struct {
			Trees []tree `json:"trees"`
			First *tree  `json:"first"`
		}, site], cofferdam.OutputSchema(), cofferdam.Title("Forest")),
		cofferdam.Tool("pointed", "A pointer.", unused[cofferdam.None, *site], cofferdam.OutputSchema(), cofferdam.Group("p")),
		cofferdam.Tool("lists", "Results that may be null.", unused[cofferdam.None, []map[string]*int], cofferdam.OutputSchema()),
	)
}

func definition(t *testing.T, name string) cofferdamtest.Definition {
	t.Helper()
	for _, definition := range cofferdamtest.Definitions() {
		if definition.Name == name {
			return definition
		}
	}
	t.Fatalf("there is no tool %s", name)
	return cofferdamtest.Definition{}
}

func check(t *testing.T, found, expected string) {
	t.Helper()
	if expected = strings.Join(strings.Split(expected, "\n\t\t"), ""); found != expected {
		t.Errorf("found    %s\nexpected %s", found, expected)
	}
}

func TestFieldsBecomeProperties(t *testing.T) {
	check(t, definition(t, "everything").InputSchema, `{"type":"object","properties":{
		"latitude":{"type":"number","minimum":-90,"maximum":90},
		"longitude":{"type":"number"},
		"text":{"type":"string","description":"A \"text\"."},
		"Untagged":{"type":"boolean"},
		"small":{"type":"integer","minimum":-128,"maximum":127},
		"count":{"type":"integer","minimum":0,"maximum":65535,"default":3},
		"word":{"type":"string","default":"abc"},
		"number":{"type":"string","default":"12"},
		"left":{"type":"string"},
		"maybe":{"type":["string","null"],"enum":["a","b",null]},
		"choices":{"type":"array","items":{"type":"string","enum":["x","y"]}},
		"pair":{"type":"array","items":{"type":"number"},"minItems":2,"maxItems":2},
		"by_name":{"type":"object","additionalProperties":{"type":"integer","format":"int64"}},
		"bytes":{"type":"string","contentEncoding":"base64"},
		"when":{"type":"string","format":"date-time"},
		"any":{},
		"raw":{},
		"color":{"pattern":"^#[0-9a-f]{6}$","type":"string"},
		"nested":{"type":["object","null"],"properties":{
		"latitude":{"type":"number","minimum":-90,"maximum":90},"longitude":{"type":"number"}},
		"required":["latitude","longitude"]}},
		"required":["latitude","longitude","text","Untagged","small","choices","pair","by_name","bytes","when","any","raw","color"]}`)
}

func TestATypeThatContainsItselfIsNamed(t *testing.T) {
	trees := definition(t, "trees")
	node := `{"type":"object","properties":{"name":{"type":"string"},"children":{"type":"array",
		"items":{"$ref":"#/$defs/tree"}}},"required":["name","children"]`
	check(t, trees.InputSchema, node+`,"$defs":{"tree":`+node+`}}}`)
	forest := definition(t, "forest")
	check(t, forest.InputSchema, `{"type":"object","properties":{
		"trees":{"type":"array","items":{"$ref":"#/$defs/tree"}},
		"first":{"anyOf":[{"$ref":"#/$defs/tree"},{"type":"null"}]}},"required":["trees"],"$defs":{"tree":`+node+`}}}`)
	check(t, forest.OutputSchema, `{"type":"object","properties":{"latitude":{"type":"number","minimum":-90,"maximum":90},
		"longitude":{"type":"number"}},"required":["latitude","longitude"]}`)
	check(t, forest.Title, "Forest")
}

func TestTheGroupIsInTheInputSchema(t *testing.T) {
	check(t, definition(t, "pointed").InputSchema, `{"type":"object","properties":{},"x-group":"p"}`)
}

func TestAPointerAtTheTopIsWhatItPointsTo(t *testing.T) {
	check(t, definition(t, "pointed").OutputSchema, definition(t, "forest").OutputSchema)
}

func TestWhatMayBeNilInAResultMayBeNull(t *testing.T) {
	check(t, definition(t, "lists").OutputSchema, `{"type":["array","null"],"items":{"type":["object","null"],
		"additionalProperties":{"type":["integer","null"],"format":"int64"}}}`)
}

func TestWhatHasNoFormInJSONIsNamed(t *testing.T) {
	complaints := map[string]*cofferdam.Function{
		"cofferdam: tool `a`, field `in.f`: its type func() has no form in JSON": cofferdam.Tool("a", "A.",
			unused[struct {
				In struct {
					F func() `json:"f"`
				} `json:"in"`
			}, string]),
		"cofferdam: tool `b`, field `n`: its default `x` is not a value of int": cofferdam.Tool("b", "B.",
			unused[struct {
				N int `json:"n" default:"x"`
			}, string]),
		"cofferdam: tool `c`, field `n`: it has the tag `enum` and is not a string": cofferdam.Tool("c", "C.",
			unused[struct {
				N int `json:"n" enum:"1,2"`
			}, string]),
		"cofferdam: tool `d`, field `n`: its minimum `low` is not a number": cofferdam.Tool("d", "D.",
			unused[struct {
				N int `json:"n" minimum:"low"`
			}, string]),
		"cofferdam: the input of tool `e` is string, which is not a struct": cofferdam.Tool("e", "E.", unused[string, string]),
	}
	for complaint, tool := range complaints {
		func() {
			defer func() {
				if found := recover(); found != complaint {
					t.Errorf("found %v, expected %s", found, complaint)
				}
			}()
			tool.InputSchema()
		}()
	}
}
