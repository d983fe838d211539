package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"unicode/utf8"

	"cofferdam"
)

type echoed struct {
	Text    string           `json:"text" description:"A text."`
	Flag    bool             `json:"flag" description:"A truth value."`
	Integer int64            `json:"integer" description:"An integer."`
	Number  float64          `json:"number" description:"A number."`
	List    []string         `json:"list" description:"Several texts."`
	Map     map[string]int64 `json:"map" description:"Integers by name."`
}

func echo(_ *cofferdam.Call, in echoed) (echoed, error) {
	return in, nil
}

type defaulted struct {
	Count int64    `json:"count" description:"A number of things." default:"3"`
	Word  string   `json:"word" description:"A word." default:"abc"`
	Tags  []string `json:"tags" description:"Several words." default:"[\"x\", \"y\"]"`
	Ratio float64  `json:"ratio" description:"A ratio." default:"0.5"`
	Flag  bool     `json:"flag" description:"A truth value." default:"true"`
}

func defaults(_ *cofferdam.Call, in defaulted) (defaulted, error) {
	return in, nil
}

type nullable struct {
	Name  *string `json:"name" description:"A name, if there is one."`
	Count *int64  `json:"count" description:"A number of things, if it is known."`
}

func nullables(_ *cofferdam.Call, in nullable) (nullable, error) {
	return in, nil
}

type nesting struct {
	Order order `json:"order" description:"The order."`
}

type order struct {
	ID       int64    `json:"id"`
	Customer customer `json:"customer"`
	Items    []item   `json:"items"`
	Status   string   `json:"status" enum:"open,paid"`
}

type customer struct {
	Name  string  `json:"name"`
	Email *string `json:"email"`
}

type item struct {
	SKU      string `json:"sku"`
	Quantity int64  `json:"quantity" default:"1"`
}

type summary struct {
	ID       int64   `json:"id"`
	Quantity int64   `json:"quantity"`
	First    *string `json:"first"`
	Customer string  `json:"customer"`
	Email    *string `json:"email"`
	Status   string  `json:"status"`
}

func nested(_ *cofferdam.Call, in nesting) (summary, error) {
	order := in.Order
	sum := summary{ID: order.ID, Customer: order.Customer.Name, Email: order.Customer.Email, Status: order.Status}
	for _, item := range order.Items {
		sum.Quantity += item.Quantity
	}
	if len(order.Items) > 0 {
		sum.First = &order.Items[0].SKU
	}
	return sum, nil
}

type failing struct {
	Kind string `json:"kind" description:"The failure." enum:"plain,suggestion,transient,permanent,value,empty,exception"`
}

type problem struct {
	Code   int       `json:"code"`
	Detail []*string `json:"detail"`
}

func fail(_ *cofferdam.Call, in failing) (cofferdam.None, error) {
	failure := &cofferdam.Failure{Message: "it went wrong"}
	switch in.Kind {
	case "suggestion":
		failure.Suggestion = "try again tomorrow"
	case "transient":
		failure.Retry = cofferdam.RetryMayHelp
	case "permanent":
		failure.Retry = cofferdam.RetryCannotHelp
	case "value":
		a := "a"
		failure.Value = problem{7, []*string{&a, nil}}
	case "empty":
		failure.Message = ""
	case "exception":
		return cofferdam.None{}, errors.New("the shelf is empty")
	}
	return cofferdam.None{}, failure
}

type crashing struct {
	Secret string `json:"secret" description:"What is printed."`
}

func crash(_ *cofferdam.Call, in crashing) (cofferdam.None, error) {
	panic("crashed with " + in.Secret)
}

type texted struct {
	Text string `json:"text" description:"The text."`
}

type characters struct {
	Text       string `json:"text"`
	Characters int    `json:"characters"`
	Bytes      int    `json:"bytes"`
	Reversed   string `json:"reversed"`
}

func unicode(_ *cofferdam.Call, in texted) (characters, error) {
	runes := []rune(in.Text)
	slices.Reverse(runes)
	return characters{in.Text, utf8.RuneCountInString(in.Text), len(in.Text), string(runes)}, nil
}

type numbers struct {
	Integer int64   `json:"integer" description:"An integer of 64 bits."`
	Number  float64 `json:"number" description:"A number."`
}

func bigNumbers(_ *cofferdam.Call, in numbers) (numbers, error) {
	return in, nil
}

func nothing(*cofferdam.Call, cofferdam.None) (cofferdam.None, error) {
	return cofferdam.None{}, nil
}

func word(*cofferdam.Call, cofferdam.None) (string, error) {
	return "word", nil
}

type sized struct {
	Size int `json:"size" description:"How many bytes."`
}

func blob(_ *cofferdam.Call, in sized) (cofferdam.Blob, error) {
	data := make([]byte, in.Size)
	for i := range data {
		data[i] = byte(i)
	}
	return cofferdam.Blob{MediaType: "application/octet-stream", Data: data}, nil
}

func several(*cofferdam.Call, cofferdam.None) ([]cofferdam.Content, error) {
	return []cofferdam.Content{
		cofferdam.Text("one"),
		cofferdam.JSON{Value: map[string]int{"two": 2}},
		cofferdam.Blob{MediaType: "image/png", Data: []byte{137, 80, 78, 71}},
		cofferdam.Resource{URI: "memo:three", MediaType: "text/plain", Text: "three"},
		cofferdam.Link{URI: "https://example.com/four.csv", Name: "four.csv", MediaType: "text/csv"},
	}, nil
}

type answer struct {
	Answer int `json:"answer"`
}

func annotated(*cofferdam.Call, cofferdam.None) (answer, error) {
	return answer{42}, nil
}

type local struct {
	Path string `json:"path" description:"The path of the file."`
}

func localFile(_ *cofferdam.Call, in local) (string, error) {
	content, err := os.ReadFile(in.Path)
	if err != nil {
		return "", fmt.Errorf("the file cannot be read: %w", err)
	}
	return string(content), nil
}
