package main

import (
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cofferdam/cofferdamtest"
)

// The cases in cases.jsonl test the tools; these tests create archives that are too unusual to keep
// as files.

func written(t testing.TB, content []byte) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "a.zip")
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestTooManyEntries(t *testing.T) {
	end := append([]byte("PK\x05\x06"), make([]byte, 18)...)
	end[10], end[11] = 0xff, 0xff
	_, err := cofferdamtest.Call("list_archive", map[string]string{"file": written(t, end)})
	if err == nil || err.Error() != "the zip file has more than 50000 entries" {
		t.Errorf("found %v", err)
	}
}

func TestAnEntryThatUnpacksToTooMuch(t *testing.T) {
	var content bytes.Buffer
	writer := zip.NewWriter(&content)
	entry, _ := writer.Create("zeros")
	for range 40 {
		_, _ = entry.Write(make([]byte, 1<<20))
	}
	_ = writer.Close()
	name := written(t, content.Bytes())
	listing, err := cofferdamtest.Call("list_archive", map[string]string{"file": name})
	if err != nil || !strings.Contains(listing, "times their size") {
		t.Errorf("found %s, %v", listing, err)
	}
	if _, err := cofferdamtest.Call("search_archive", map[string]string{"file": name, "pattern": "x"}); err != nil {
		t.Errorf("what is not text is passed over: %v", err)
	}
	_, err = cofferdamtest.Call("read_archive_entry", map[string]any{"file": name, "entry": "zeros", "offset": 30 << 20})
	if err == nil || !strings.HasPrefix(err.Error(), "the archive unpacks to far more") {
		t.Errorf("found %v", err)
	}
}

func TestDangers(t *testing.T) {
	for name, expected := range map[string]string{
		"a/b": "", "a/../../b": "leads out", "/a": "absolute", `C:\a`: "absolute", `..\a`: "leads out", "": "no name", "a\nb": "no name",
	} {
		if found := dangerOf(entry{path: name, kind: "file"}); !strings.Contains(found, expected) || (expected == "") != (found == "") {
			t.Errorf("%q: found %s", name, found)
		}
	}
}

func FuzzArchives(f *testing.F) {
	fixtures, _ := filepath.Glob("fixtures/*")
	for _, name := range fixtures {
		if content, err := os.ReadFile(name); err == nil {
			f.Add(content)
		}
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		file := written(t, content)
		_, _ = cofferdamtest.Call("list_archive", map[string]string{"file": file})
		_, _ = cofferdamtest.Call("search_archive", map[string]string{"file": file, "pattern": "a"})
	})
}
