"""Finds the errors whose texts a client may read and that are made of what it must not: paths, addresses, pointers, the
words of libraries and of the system. Which reasons stay inside is read from the coordinator's own list, so that the two
cannot part. Start-up and the command line (actors/) talk to the operator and are let alone."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("schemas", "eplb", "kernels", "transport", "workers", "coordinator")

_CALL = re.compile(r"\b(?:fail|make_error)\s*\(\s*reason::(\w+)")
_PRIVATE = re.compile(
    r"\bstrerror\b|\bwhat\s*\(\)|getDescription|ucs_status_string|ERR_\w*string|\bErrorString|\bdlerror\b"
    r"|_category\(\)|\bpath\b|\baddress\b|\bhost\b|\bgetenv\b|\bstatic_cast<(?:const )?void|%p"
)
# A number about a thing, or whether it is there, tells nothing of it.
_HARMLESS = re.compile(r"\w+(?:\.|->)(?:size|empty|length)\(\)|\w+\(\)\.(?:size|empty|length)\(\)|\bpath == nullptr")


def inward_reasons():
    """Reasons that the border replaces by a fixed sentence before a client reads them."""
    text = (ROOT / "coordinator/rpc/outward_error.cpp").read_text()
    return set(re.findall(r"case reason::(\w+):", text.split("return false")[0]))


def _end(code, start):
    """Where the call whose parenthesis opens at `start` ends."""
    depth = 0
    for at in range(start, len(code)):
        depth += {"(": 1, ")": -1}.get(code[at], 0)
        if depth == 0:
            return at + 1
    return len(code)


def find_private_words(source):
    if not source.is_cpp or source.folder not in FOLDERS:
        return
    # The client library runs in the client's process: nothing stands between it and its caller.
    inward = set() if source.path.startswith("transport/client/") else inward_reasons()
    code = "\n".join(source.code_lines)
    for match in _CALL.finditer(code):
        call = code[match.start() : _end(code, code.index("(", match.start()))]
        if match.group(1) in inward:
            continue
        found = _PRIVATE.search(_HARMLESS.sub(" ", call))
        if found:
            yield code.count("\n", 0, match.start() + found.start()) + 1, f"{match.group(1)}: {found.group(0)}"
