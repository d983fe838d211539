"""What the Python clients share: where the server is, and whether it is still computing."""

import json
import os
import sys
import time
from pathlib import Path

# What `cargo xtask mcp` says: {"mode", "command": [...]} or {"mode", "url", "token", "pid"}; {"swap": {"file", "with"}}
PLAN = json.loads(sys.argv[1])
CALLS_AT_ONCE = 32
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def check(condition, what):
    if not condition:
        raise AssertionError(what)


def server_pid():
    """The process of the server: a child of this one, unless it was there before."""
    if "pid" in PLAN:
        return PLAN["pid"]
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and _stat(int(folder.name))[1] == str(os.getpid()):
                return int(folder.name)
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended meanwhile
    raise AssertionError("the server is not a child of this process")


def _stat(pid):
    # After the name in parentheses: state, parent, …, user time and system time as the 12th and 13th.
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()


def cpu_seconds(pid):
    fields = _stat(pid)
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND


def is_idle(pid):
    """Whether the server computes for less than a fifth of half a second."""
    before = cpu_seconds(pid)
    time.sleep(0.5)
    return cpu_seconds(pid) - before < 0.1


def check_computes(pid):
    """On a busy machine, the server may get little time for a moment. Calls that have ended stay idle."""
    if all(is_idle(pid) for _ in range(40)):
        raise AssertionError("the calls do not compute until they are cancelled")


def check_idle(pid):
    """Cancelled guests end soon. Their own limits are minutes away."""
    if not any(is_idle(pid) for _ in range(40)):
        raise AssertionError("a cancelled call is still computing")


def swap_plugin():
    """Puts another component in the place of a plugin, in one step."""
    file, other = Path(PLAN["swap"]["file"]), Path(PLAN["swap"]["with"])
    fresh = file.with_suffix(".new")
    fresh.write_bytes(other.read_bytes())
    fresh.rename(file)
