package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cofferdam"
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

func TestAListingThatUnpacksToTooMuch(t *testing.T) {
	var content bytes.Buffer
	packer := gzip.NewWriter(&content)
	writer := tar.NewWriter(packer)
	for _, name := range []string{"a", "b"} {
		_ = writer.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Size: 20 << 20, Mode: 0o600})
		_, _ = writer.Write(make([]byte, 20<<20))
	}
	_ = writer.Close()
	_ = packer.Close()
	_, err := cofferdamtest.Call("list_archive", map[string]string{"file": written(t, content.Bytes())})
	var failure *cofferdam.Failure
	if !errors.As(err, &failure) || failure.Suggestion != "do not unpack it; "+listAdvice {
		t.Errorf("found %v", err)
	}
}

// zipped returns a zip file of files with a content.
func zipped(t testing.TB, content string, names ...string) string {
	t.Helper()
	var packed bytes.Buffer
	writer := zip.NewWriter(&packed)
	for _, name := range names {
		entry, err := writer.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = entry.Write([]byte(content))
	}
	_ = writer.Close()
	return written(t, packed.Bytes())
}

func TestNamesThatAreThereTwice(t *testing.T) {
	name := zipped(t, "", "a.txt", "b.txt", "./a.txt", "a.txt", "c/", "c/")
	listing, err := cofferdamtest.Call("list_archive", map[string]string{"file": name})
	expected := `"warnings":["` + "`./a.txt`" + ` is there more than once: programs differ in which one they unpack"]`
	if err != nil || !strings.Contains(listing, expected) {
		t.Errorf("found %s, %v", listing, err)
	}
}

func TestNamesThatDifferInCase(t *testing.T) {
	name := zipped(t, "", "a/Über.txt", "a/ÜBER.TXT", "A/über.txt", "b.txt")
	listing, err := cofferdamtest.Call("list_archive", map[string]string{"file": name})
	expected := `"warnings":["` + "`a/ÜBER.TXT`" + ` differs from another name only in case: some systems unpack both to the same file"]`
	if err != nil || !strings.Contains(listing, expected) {
		t.Errorf("found %s, %v", listing, err)
	}
}

func TestAMatchInTwoPiecesOfALine(t *testing.T) {
	for _, offset := range []int{0, 64<<10 - 3, 64<<10 - 1, 64 << 10, 128<<10 - 4} {
		line := strings.Repeat("x", offset) + "needle" + strings.Repeat("y", 200<<10)
		name := zipped(t, "first\n"+line+"\nneedle\n", "a.js")
		found, err := cofferdamtest.Call("search_archive", map[string]string{"file": name, "pattern": "need+le"})
		if err != nil || strings.Count(found, `"line":2`) != 1 || strings.Count(found, `"line":3`) != 1 {
			t.Errorf("%d: found %.200s, %v", offset, found, err)
		}
	}
}

func TestDangers(t *testing.T) {
	for name, expected := range map[string]string{
		"a/b": "", "a/../../b": "leads out", "/a": "absolute", `C:\a`: "absolute", `..\a`: "leads out", "": "no name", "a\nb": "no name",
		"gpj\u202efdp.exe": "U+202E", "עברית.txt": "",
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
