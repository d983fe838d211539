package main

import (
	"strings"
	"testing"

	"cofferdam/cofferdamtest"
)

// The cases in cases.jsonl test the tools; these tests are for their parts.

func TestPunycode(t *testing.T) {
	for encoded, expected := range map[string]string{
		"xn--pple-43d.com":         "аpple.com",
		"xn--wgv71a119e.jp":        "日本語.jp",
		"xn--mnchen-3ya.de":        "münchen.de",
		"xn--ls8h.la":              "💩.la",
		"xn--9.com":                "xn--9.com",
		"xn--99999999999999.com":   "xn--99999999999999.com",
		"a.xn--" + long(70) + ".b": "a.xn--" + long(70) + ".b",
	} {
		if found := unicodeHost(encoded); found != expected {
			t.Errorf("%s: found %s, expected %s", encoded, found, expected)
		}
	}
}

func long(length int) string {
	return strings.Repeat("z", length)
}

func TestDisguisedAddresses(t *testing.T) {
	for host, expected := range map[string]string{
		"2130706433": "127.0.0.1", "0x7f.1": "127.0.0.1", "0177.0.0.1": "127.0.0.1", "192.168.257": "192.168.1.1",
		"4294967296": "", "1.2.3.4.5": "", "example.com": "", "256.1.1.1": "", "1_0.1": "",
	} {
		address, is := disguised(host)
		if found := address.String(); is != (expected != "") || is && found != expected {
			t.Errorf("%s: found %s", host, found)
		}
	}
}

func TestDefinitions(t *testing.T) {
	if count := len(cofferdamtest.Definitions()); count != 3 {
		t.Errorf("there are %d tools", count)
	}
}

func FuzzPunycode(f *testing.F) {
	f.Add("pple-43d")
	f.Fuzz(func(_ *testing.T, text string) { unicodeHost("xn--" + text) })
}

func FuzzDates(f *testing.F) {
	f.Add(`{"date":"03/04/2026","order":"day-first"}`)
	f.Fuzz(func(_ *testing.T, text string) {
		_, _ = cofferdamtest.Call("inspect_date", map[string]string{"date": text})
	})
}
