"""File operations with Python's own library: `open`, `os` and what is built on them."""

# Only what is imported when the component is made is in it; the steps `python` need the most.
import csv
import dbm.dumb
import errno
import filecmp
import fileinput
import glob
import gzip
import io
import json
import logging
import os
import pathlib
import pickle
import shutil
import sqlite3
import tarfile
import tempfile
import time
import zipfile

from componentize_py_types import Err

SHOWN_BYTES_MAX = 512


def done(_):
    return "done"


def number_of(count):
    return str(count)


def kind_and_size(status):
    if os.path.stat.S_ISDIR(status.st_mode):
        return "directory"
    return f"file {status.st_size}" if os.path.stat.S_ISREG(status.st_mode) else "other"


def byte_pattern(start, count):
    return bytes((at * 31 + (at >> 8)) & 255 for at in range(start, start + count))


class Run:
    """The steps of one call, with the files that they open."""

    def __init__(self):
        self.streams = []
        self.descriptors = []
        # What the steps `python` see and leave.
        self.names = {}

    # Streams.

    def open(self, mode, path):
        # C's `wx` is Python's `x`.
        self.streams.append(open(path, mode.replace("wx", "x") + "b"))
        return str(len(self.streams) - 1)

    def stream(self, number):
        return self.streams[int(number)]

    def close(self, number):
        return done(self.stream(number).close())

    def get(self, number, count):
        return self.stream(number).read(int(count)).decode()

    def put(self, number, content):
        return done(self.stream(number).write(content.encode()))

    def line(self, number):
        line = self.stream(number).readline()
        return line.decode().removesuffix("\n") if line else "end"

    def seek(self, number, offset, whence):
        origin = {"start": os.SEEK_SET, "current": os.SEEK_CUR, "end": os.SEEK_END}[whence]
        return number_of(self.stream(number).seek(int(offset), origin))

    def tell(self, number):
        return number_of(self.stream(number).tell())

    def flush(self, number):
        return done(self.stream(number).flush())

    def cut(self, number, count):
        return done(self.stream(number).truncate(int(count)))

    def status_of(self, number):
        return kind_and_size(os.fstat(self.stream(number).fileno()))

    # Descriptors.

    def os_open(self, flags, path):
        mode = os.O_RDWR if "r" in flags and "w" in flags else os.O_RDONLY if "r" in flags else os.O_WRONLY
        for letter, flag in {"a": os.O_APPEND, "c": os.O_CREAT, "x": os.O_EXCL, "t": os.O_TRUNC}.items():
            mode |= flag if letter in flags else 0
        mode |= os.O_DIRECTORY if "d" in flags else 0
        self.descriptors.append(os.open(path, mode, 0o666))
        return str(len(self.descriptors) - 1)

    def descriptor(self, number):
        return self.descriptors[int(number)]

    def os_close(self, number):
        return done(os.close(self.descriptor(number)))

    def os_write(self, number, content):
        return number_of(os.write(self.descriptor(number), content.encode()))

    def pread(self, number, count, offset):
        return os.pread(self.descriptor(number), int(count), int(offset)).decode()

    def pwrite(self, number, content, offset):
        return number_of(os.pwrite(self.descriptor(number), content.encode(), int(offset)))

    def sync(self, number):
        os.fsync(self.descriptor(number))
        return done(os.fdatasync(self.descriptor(number)))

    # Paths.

    def truncate(self, path, count):
        return done(os.truncate(path, int(count)))

    def status(self, path):
        return kind_and_size(os.stat(path))

    def is_new(self, path):
        return str(0 <= int(time.time() - os.stat(path).st_mtime) < 60).lower()

    def same(self, one, other):
        return str(os.path.samefile(one, other)).lower()

    def exists(self, path):
        return str(os.path.exists(path)).lower()

    def make(self, path):
        return done(os.mkdir(path))

    def remove_directory(self, path):
        return done(os.rmdir(path))

    def rename(self, source, target):
        return done(os.rename(source, target))

    def unlink(self, path):
        return done(os.unlink(path))

    def remove(self, path):
        return done(os.remove(path))

    def symlink(self, source, target):
        return done(os.symlink(source, target))

    def link(self, source, target):
        return done(os.link(source, target))

    def list(self, path):
        with os.scandir(path) as entries:
            return " ".join(sorted(entry.name + ("/" if entry.is_dir() else "") for entry in entries))

    def cwd(self):
        return os.getcwd()

    def chdir(self, path):
        return done(os.chdir(path))

    # Whole files.

    def fill(self, path, count):
        """Bytes of every value, in pieces that fit no block."""
        # The pattern repeats after this many.
        content = byte_pattern(0, 65536)
        with open(path, "wb") as file:
            left, at = int(count), 0
            while left:
                piece = content[at % 65536 :][: min(left, 4999)]
                file.write(piece)
                left, at = left - len(piece), at + len(piece)
        return "done"

    def verify(self, path):
        content = byte_pattern(0, 65536)
        at = 0
        with open(path, "rb") as file:
            while piece := file.read(7001):
                expected = (content + content)[at % 65536 :][: len(piece)]
                if piece != expected:
                    return f"a byte between {at} and {at + len(piece)} differs"
                at += len(piece)
        return str(at)

    def show(self, path):
        with open(path, "rb") as file:
            return file.read(SHOWN_BYTES_MAX).hex()

    # Everything else.

    def python(self, code):
        """Statements, whose answer is the value of `it`. An exception is an answer with its class."""
        self.names["it"] = None
        try:
            exec(code, self.names)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return str(self.names["it"])

    def crash(self):
        raise AssertionError("as asked")


class WitWorld:
    def files(self, steps):
        run = Run()
        answers = []
        for what, *words in steps:
            if what == "fail":
                raise Err("as asked")
            try:
                answers.append(getattr(run, what)(*words))
            except OSError as error:
                answers.append(errno.errorcode.get(error.errno, str(error)))
        return answers
