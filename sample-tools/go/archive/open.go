package main

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"time"

	"cofferdam"
)

const (
	// Maximum bytes that a call unpacks. A megabyte of zeros is one kilobyte in gzip.
	unpackedBytesMax = 256 << 20
	// The directory of a zip file is read at once; this number of entries needs about 20 MiB of
	// memory.
	zipEntriesMax = 50_000
	// Text compresses to a tenth. Deflate can reach a thousandth, with zeros.
	ratioMax = 200
	// Up to this size, any ratio is harmless.
	harmlessBytes = 10 << 20
)

// entry is a file, directory or link in an archive.
type entry struct {
	path     string
	kind     string
	size     int64
	packed   int64
	modified time.Time
	target   string
	// open is nil for an entry without content. It can be called while the entry is visited.
	open func() (io.Reader, error)
}

// archive is an open archive.
type archive struct {
	format string
	// walk visits the entries in order until visit returns enough.
	walk func(visit func(entry) (enough bool, err error)) error
}

// with opens an archive, whose format it detects by the content, and closes it. The advice is what
// to do about an archive that unpacks to too much.
func with(name, advice string, use func(archive) error) error {
	file, err := os.Open(name)
	if err != nil {
		return cannotRead(name, err)
	}
	defer file.Close()
	status, err := file.Stat()
	if err != nil {
		return cannotRead(name, err)
	}
	if status.IsDir() {
		return cofferdam.Failf("`%s` is a directory", name).Suggest("pass the path of an archive in it")
	}
	opened, err := recognised(file, status.Size())
	if err == nil {
		err = use(opened)
	}
	return explained(name, advice, err)
}

func recognised(file *os.File, size int64) (archive, error) {
	head := make([]byte, 512)
	read, err := file.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return archive{}, err
	}
	head = head[:read]
	switch {
	case bytes.HasPrefix(head, []byte("PK\x03\x04")), bytes.HasPrefix(head, []byte("PK\x05\x06")):
		return zipArchive(file, size)
	case bytes.HasPrefix(head, []byte("\x1f\x8b")):
		unpacked, err := gzip.NewReader(bufio.NewReader(file))
		if err != nil {
			return archive{}, err
		}
		return compressed("gz", unpacked.Name, file.Name(), unpacked, size)
	case bytes.HasPrefix(head, []byte("BZh")):
		return compressed("bz2", "", file.Name(), bzip2.NewReader(bufio.NewReader(file)), size)
	case isTar(head):
		// Entries are not compressed, and skipped entries are not read.
		return tarArchive("tar", file), nil
	}
	return archive{}, cofferdam.Failf("this is not an archive of a known format").
		Suggest("pass a zip, tar, tar.gz, tar.bz2 or gz file")
}

func isTar(head []byte) bool {
	return len(head) >= 262 && string(head[257:262]) == "ustar"
}

// compressed is a compressed tar archive, or a single compressed file.
func compressed(ending, stored, name string, unpacked io.Reader, size int64) (archive, error) {
	left := int64(unpackedBytesMax)
	content := bufio.NewReader(&limited{unpacked, max(size*ratioMax, harmlessBytes), &left})
	head, err := content.Peek(512)
	if err != nil && !errors.Is(err, io.EOF) {
		return archive{}, err
	}
	if isTar(head) {
		return tarArchive("tar."+ending, content), nil
	}
	if stored == "" {
		stored = strings.TrimSuffix(path.Base(name), "."+ending)
	}
	walk := func(visit func(entry) (bool, error)) error {
		// The size is unknown before the file is unpacked.
		_, err := visit(entry{path: stored, kind: "file", size: -1, open: func() (io.Reader, error) { return content, nil }})
		return err
	}
	return archive{format: ending, walk: walk}, nil
}

func tarArchive(format string, content io.Reader) archive {
	walk := func(visit func(entry) (bool, error)) error {
		reader := tar.NewReader(content)
		for {
			header, err := reader.Next()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			it := entry{path: header.Name, size: header.Size, modified: header.ModTime, target: header.Linkname}
			switch header.Typeflag {
			case tar.TypeReg, tar.TypeGNUSparse:
				it.kind, it.open = "file", func() (io.Reader, error) { return reader, nil }
			case tar.TypeDir:
				it.kind = "directory"
			case tar.TypeSymlink, tar.TypeLink:
				it.kind = "link"
			default:
				it.kind = "special"
			}
			if enough, err := visit(it); enough || err != nil {
				return err
			}
		}
	}
	return archive{format: format, walk: walk}
}

func zipArchive(file *os.File, size int64) (archive, error) {
	if count, is := zipEntries(file, size); is && count > zipEntriesMax {
		return archive{}, cofferdam.Failf("the zip file has more than %d entries", zipEntriesMax)
	}
	reader, err := zip.NewReader(file, size)
	if err != nil {
		return archive{}, err
	}
	left := int64(unpackedBytesMax)
	walk := func(visit func(entry) (bool, error)) error {
		for _, it := range reader.File {
			if enough, err := visit(zipEntry(it, &left)); enough || err != nil {
				return err
			}
		}
		return nil
	}
	return archive{format: "zip", walk: walk}, nil
}

func zipEntry(it *zip.File, left *int64) entry {
	found := entry{
		path: it.Name, kind: "file", size: int64(it.UncompressedSize64), packed: int64(it.CompressedSize64), modified: it.Modified,
	}
	switch mode := it.Mode(); {
	case mode.IsDir():
		found.kind = "directory"
	case mode&fs.ModeSymlink != 0:
		found.kind = "link"
	case !mode.IsRegular():
		found.kind = "special"
	default:
		found.open = func() (io.Reader, error) { return openZipped(it, left) }
	}
	return found
}

func openZipped(it *zip.File, left *int64) (io.Reader, error) {
	if it.Flags&1 != 0 {
		return nil, cofferdam.Failf("`%s` is encrypted", it.Name).Suggest("ask the user for an archive without a password")
	}
	content, err := it.Open()
	if errors.Is(err, zip.ErrAlgorithm) {
		return nil, cofferdam.Failf("`%s` is compressed by method %d, which is not known here", it.Name, it.Method)
	}
	if err != nil {
		return nil, err
	}
	return &limited{content, max(int64(it.CompressedSize64)*ratioMax, harmlessBytes), left}, nil
}

// zipEntries returns the number of entries from the end of a zip file, before its directory is
// read.
func zipEntries(file *os.File, size int64) (int, bool) {
	tail := make([]byte, min(size, 65_557))
	if _, err := file.ReadAt(tail, size-int64(len(tail))); err != nil {
		return 0, false
	}
	at := bytes.LastIndex(tail, []byte("PK\x05\x06"))
	if at < 0 || at+12 > len(tail) {
		return 0, false
	}
	// 0xffff means that a larger number is stored elsewhere.
	return int(binary.LittleEndian.Uint16(tail[at+10:])), true
}

var errBomb = errors.New("unpacks to too much")

// limited ends with errBomb if the ratio is higher than that of any text, or if the limit of a call
// is reached.
type limited struct {
	reader io.Reader
	left   int64
	// callLeft is shared by the entries of an archive.
	callLeft *int64
}

func (it *limited) Read(to []byte) (int, error) {
	left := min(it.left, *it.callLeft)
	if left <= 0 {
		return 0, errBomb
	}
	read, err := it.reader.Read(to[:min(int64(len(to)), left)])
	it.left -= int64(read)
	*it.callLeft -= int64(read)
	return read, err
}

// explained converts an error to a failure for a model.
func explained(name, advice string, err error) error {
	var failure *cofferdam.Failure
	switch {
	case err == nil, errors.As(err, &failure):
		return err
	case errors.Is(err, errBomb):
		return cofferdam.Failf("the archive unpacks to far more than it is, or to more than %d MiB: it may be made to fill memories", unpackedBytesMax>>20).
			Suggest("do not unpack it; %s", advice)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return cofferdam.Failf("the archive `%s` ends too early: it is not complete", name)
	default:
		return cofferdam.Failf("the archive `%s` is damaged: %v", name, err)
	}
}

func cannotRead(name string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return cofferdam.Failf("there is no file `%s`", name).Suggest("check the path; it begins with the name of a mount, as in /data/logs.zip")
	case errors.Is(err, syscall.EBADF):
		return cofferdam.Failf("`%s` is in no mount that was granted", name).Suggest("pass a path that begins with the name of a mount, as in /data/logs.zip")
	}
	var cause *fs.PathError
	if errors.As(err, &cause) {
		err = cause.Err
	}
	return cofferdam.Failf("`%s` cannot be read: %v", name, err)
}
