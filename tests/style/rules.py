"""The rules of the house that a machine can judge. To add one, append a Rule with at least one
example it must catch and, where it could bite too much, one it must let pass: style_test.py runs
them all.

A rule that hurts a real case is broken at the place, in one line that says why:

    // style: allow RULE: reason
"""

import re
from dataclasses import dataclass
from typing import Callable, Iterable, Tuple

from error_texts import find_private_words
from source import Source

# What each folder may include: itself and what stands to its left. tests/ and deploy/ see all and
# are seen by none.
MAY_INCLUDE = {
    "schemas": {"schemas"},
    "eplb": {"schemas", "eplb"},
    "kernels": {"schemas", "kernels"},
    "transport": {"schemas", "eplb", "kernels", "transport"},
    "workers": {"schemas", "eplb", "kernels", "transport", "workers"},
    "coordinator": {"schemas", "eplb", "kernels", "transport", "coordinator"},
    "actors": {"schemas", "eplb", "kernels", "transport", "workers", "coordinator", "actors"},
}
PRODUCT = tuple(folder + "/" for folder in MAY_INCLUDE)

# Libraries that live in one place: (what an include of it looks like, where it may stand).
LIBRARY_HOMES = (
    ("CAF", re.compile(r"caf/"), ("actors/",)),
    ("UCX", re.compile(r"uc[pts]/"), ("transport/ucx/",)),
    (
        "Cap'n Proto RPC",
        re.compile(r"capnp/(rpc|ez-rpc|serialize-async|membrane)|kj/(async|compat/tls|timer)"),
        ("coordinator/rpc/", "transport/client/"),
    ),
    ("OpenSSL's protocol", re.compile(r"openssl/(ssl|x509|pem|conf|bio)"), ("transport/tls/",)),
    ("NCCL", re.compile(r"nccl"), ("transport/nccl/",)),
    (
        "CUDA",
        re.compile(r"cuda|cooperative_groups|cub/|cute/|cutlass/"),
        ("kernels/cuda/", "transport/nvlink/", "transport/nccl/", "workers/device/"),
    ),
)

# Pure cores: time and randomness come in as values, nobody waits.
PURE = (
    "schemas/",
    "eplb/",
    "coordinator/core/",
    "workers/core/",
    "transport/step/",
    "transport/snapshot/",
)

_RAW_OWNERSHIP = re.compile(
    r"(?<!operator )\bnew\b"
    r"|(?<!operator )(?<!= )(?<!=)\bdelete\b(?!\s*;)"
    r"|\b(?:malloc|realloc|free)(?=\s*\()"
)
_INTO_OWNER = re.compile(r"(?:unique|shared)_ptr<[^;{}()]*>\s*\w*\s*[({]$")
_INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')

Finding = Tuple[int, str]  # line number from 1, what is wrong there


@dataclass(frozen=True)
class Rule:
    name: str
    says: str
    find: Callable[[Source], Iterable[Finding]]
    catches: Tuple[Tuple[str, str], ...]  # (path, text) that must be found
    passes: Tuple[Tuple[str, str], ...] = ()  # (path, text) that must not


def includes(source):
    for number, line in enumerate(source.lines, 1):
        match = _INCLUDE.match(line)
        if match:
            yield number, match.group(1), match.group(2)


def pattern(regex, *, code=True, where=lambda source: True, unless=()):
    """A rule's find() for a pattern: in C++ code (comments and literals blanked), or in whole lines
    of any file."""
    compiled = re.compile(regex)

    def find(source):
        if (
            (code and not source.is_cpp)
            or not where(source)
            or source.path.startswith(tuple(unless))
        ):
            return
        for number, line in enumerate(source.code_lines if code else source.lines, 1):
            match = compiled.search(line)
            if match:
                yield number, match.group(0).strip()

    return find


def in_product(source):
    return source.path.startswith(PRODUCT)


def is_message(source):
    """Files whose values travel through an actor. The clients' RPC never does: it carries rows and snapshots."""
    name = source.path.rsplit("/", 1)[-1]
    if name.endswith(".capnp"):
        return name not in ("tier.capnp", "snapshot.capnp")
    in_messages = source.path.startswith("schemas/control/") and source.path.endswith(".hpp")
    travels = "envelope" in name or re.search(r"\binspect\s*\(|add_message_type", source.text)
    in_caf = source.folder == "actors" and source.is_cpp and travels
    return bool(in_messages or in_caf)


def find_upward_includes(source):
    allowed = MAY_INCLUDE.get(source.folder)
    if not source.is_cpp or allowed is None:
        return
    for number, _, name in includes(source):
        top = name.split("/", 1)[0]
        if (top in MAY_INCLUDE or top in ("tests", "deploy")) and top not in allowed:
            yield number, f"{source.folder}/ includes {name}"


def find_includes_not_from_root(source):
    if not source.is_cpp:
        return
    for number, quote, name in includes(source):
        top = name.split("/", 1)[0]
        if (
            quote == '"'
            and top not in MAY_INCLUDE
            and top != "tests"
            and name != "moetier_version.hpp"
        ):
            yield number, name


def find_libraries_away_from_home(source):
    if not source.is_cpp or not in_product(source):
        return
    for number, _, name in includes(source):
        for library, looks_like, homes in LIBRARY_HOMES:
            if looks_like.match(name) and not source.path.startswith(homes):
                yield number, f"{name} ({library} lives in {', '.join(homes)})"


def find_raw_ownership(source):
    """new, delete and, outside tests, C's allocation. A smart pointer may take what only a private
    constructor makes; a test may count allocations."""
    if not source.is_cpp:
        return
    code = "\n".join("" if _INCLUDE.match(line) else line for line in source.code_lines)
    for match in _RAW_OWNERSHIP.finditer(code):
        before = code[max(0, match.start() - 200) : match.start()].rstrip()
        owned = match.group(0) == "new" and _INTO_OWNER.search(before)
        counting = source.folder == "tests" and match.group(0) not in ("new", "delete")
        if not owned and not counting:
            yield code.count("\n", 0, match.start()) + 1, match.group(0)


def find_missing_pragma_once(source):
    if source.path.endswith((".hpp", ".cuh")) and not source.text.startswith("#pragma once\n"):
        yield 1, "first line is not #pragma once"


def find_missing_paragraph(source):
    if not source.path.endswith((".hpp", ".cuh")):
        return
    paragraph = []
    for line in source.lines[1:]:
        if not line.startswith("//"):
            break
        paragraph.append(line[2:].strip())
    if len(re.sub(r"\bThread:.*", "", " ".join(paragraph))) < 25:
        yield 2, "no paragraph after #pragma once"


def find_missing_thread_line(source):
    if (
        in_product(source)
        and source.path.endswith(".hpp")
        and not re.search(r"\bThread:", source.comments)
    ):
        yield 1, "no 'Thread:' in the header's comments"


_HEADER = (
    "#pragma once\n"
    "// A placement says which expert sits in which slot, per layer: an immutable value.\n"
    "// Thread: any.\n"
)
_WORKPLACE = "/wo" + "rk/"
_SHARED = ".." + "/shared"
_TO_DO = "TO" + "DO"

RULES = (
    Rule(
        "folder_law",
        "a folder includes itself and folders to its left",
        find_upward_includes,
        catches=(
            ("schemas/a.hpp", '#include "eplb/placement.hpp"'),
            ("eplb/a.cpp", '#include "kernels/backend.hpp"'),
            ("kernels/a.cpp", '#include "eplb/placement.hpp"'),
            ("workers/a.cpp", '#include "coordinator/core/event.hpp"'),
            ("coordinator/a.cpp", '#include "workers/core/event.hpp"'),
            ("actors/a.cpp", '#include "tests/sim/world.hpp"'),
        ),
        passes=(
            ("actors/a.cpp", '#include "workers/core/event.hpp"'),
            ("tests/a.cpp", '#include "actors/a.hpp"'),
            ("transport/a.cpp", '#include "eplb/placement.hpp"'),
        ),
    ),
    Rule(
        "include_from_root",
        'quoted includes start at the root: "eplb/placement.hpp"',
        find_includes_not_from_root,
        catches=(
            ("eplb/a.cpp", '#include "placement.hpp"'),
            ("eplb/a.cpp", '#include "../schemas/a.hpp"'),
        ),
        passes=(("eplb/a.cpp", '#include "eplb/a.hpp"\n#include <vector>'),),
    ),
    Rule(
        "library_home",
        "CAF, Cap'n Proto RPC, UCX, NCCL and CUDA each live in their own folders",
        find_libraries_away_from_home,
        catches=(
            ("workers/a.cpp", "#include <caf/actor.hpp>"),
            ("transport/step/a.cpp", "#include <ucp/api/ucp.h>"),
            ("actors/a.cpp", "#include <capnp/rpc-twoparty.h>"),
            ("coordinator/core/a.cpp", "#include <kj/async-io.h>"),
            ("kernels/cpu/a.cpp", "#include <cuda_runtime_api.h>"),
            ("transport/ucx/a.cpp", "#include <nccl.h>"),
        ),
        passes=(
            ("actors/a.cpp", "#include <caf/actor.hpp>"),
            ("schemas/a.cpp", "#include <capnp/serialize.h>"),
            ("kernels/cuda/a.cu", "#include <cuda_runtime_api.h>"),
            ("tests/a.cpp", "#include <caf/actor.hpp>"),
        ),
    ),
    Rule(
        "pragma_once",
        "a header's first line is #pragma once",
        find_missing_pragma_once,
        catches=(("eplb/a.hpp", "// A paragraph.\n#pragma once\n"),),
        passes=(("eplb/a.hpp", _HEADER),),
    ),
    Rule(
        "header_paragraph",
        "a header opens with a paragraph: what it is, who owns it, who may call it",
        find_missing_paragraph,
        catches=(
            ("eplb/a.hpp", "#pragma once\n\n#include <vector>\n"),
            ("eplb/a.hpp", "#pragma once\n// Thread: any.\n"),
        ),
        passes=(("eplb/a.hpp", _HEADER),),
    ),
    Rule(
        "thread_line",
        "a header says by which threads it may be used: // Thread: ...",
        find_missing_thread_line,
        catches=(
            ("eplb/a.hpp", "#pragma once\n// A placement.\n"),
            ("eplb/a.hpp", '#pragma once\nauto x = "Thread:";\n'),
        ),
        passes=(("eplb/a.hpp", _HEADER),),
    ),
    Rule(
        "message_float",
        "no floating point (the packaged CAF corrupts it) and no std::byte (slow) in messages",
        lambda source: pattern(
            (
                r"\bFloat(32|64)\b"
                if source.path.endswith(".capnp")
                else r"\b(float|double|std::byte)\b"
            ),
            code=not source.path.endswith(".capnp"),
            where=is_message,
        )(source),
        catches=(
            ("schemas/control.capnp", "  load @3 :Float32;"),
            ("schemas/control/messages.hpp", "struct load_report { double load = 0; };"),
            ("actors/envelope.hpp", "struct envelope { std::vector<std::byte> bytes; };"),
            ("actors/news.hpp", "double x;\nauto inspect(F& f, news& n) { return f(n.x); }"),
        ),
        passes=(
            ("schemas/model/description.hpp", "float eps = 0;"),
            ("schemas/tier.capnp", "  weights @7 :List(Float32);"),
            ("schemas/control/messages.hpp", "// no float\nstd::uint32_t units = 0;"),
        ),
    ),
    Rule(
        "error_text",
        "no text that a client may read holds a path, an address, a pointer or a library's words",
        find_private_words,
        catches=(
            ("coordinator/a.cpp", "return fail(reason::not_ready, std::strerror(errno));"),
            ("coordinator/rpc/a.cpp", "make_error(reason::no_credit, e.what())"),
            ("transport/ucx/a.cpp", 'fail(reason::no_credit, fmt::format("{}", ucs_status_string(s)))'),
            ("transport/client/link/a.cpp", "fail(reason::not_ready,\n     exception.getDescription())"),
            ("transport/client/a.cpp", "fail(reason::file_unreadable, path)"),
            ("coordinator/core/a.cpp", "fail(reason::invalid_argument, known->held.path)"),
            ("workers/a.cpp", "fail(reason::no_credit, member.address)"),
        ),
        passes=(
            ("coordinator/a.cpp", "fail(reason::state_unusable, std::strerror(errno))"),
            ("workers/weights/a.cpp", "fail(reason::file_malformed, path, what)"),
            ("transport/a.cpp", 'fail(reason::no_credit, "address bytes", address.size(), max)'),
            ("actors/a.cpp", "fail(reason::config_invalid, path)"),
        ),
    ),
    Rule(
        "raw_new",
        "no new and no delete: values, or resources in one unique_ptr",
        find_raw_ownership,
        catches=(
            ("eplb/a.cpp", "auto* p = new placement();"),
            ("eplb/a.cpp", "delete[] p;"),
            ("eplb/a.cpp", "std::unique_ptr<placement> a;\nuse(new placement());"),
            ("eplb/a.cpp", "delete it->second;"),
            ("eplb/a.cpp", "void* p = std::malloc(8);"),
        ),
        passes=(
            ("eplb/a.hpp", "#include <new>\nplacement(const placement&) = delete;"),
            ("eplb/a.cpp", '// a new placement\nauto s = "delete it";'),
            ("tests/a.cpp", "void* operator new(std::size_t n) { return std::malloc(n); }"),
            ("eplb/a.cpp", "return std::unique_ptr<placement>(\n    new placement(spans));"),
            ("eplb/a.cpp", "// style: allow raw_new: the C ABI has handles\nreturn new session();"),
        ),
    ),
    Rule(
        "sleep",
        "nobody sleeps: wait on a descriptor or a condition; tests pass time in",
        pattern(r"\bsleep_(for|until)\b|(^|[;{}()=!,]|\breturn\b)\s*(::)?(u|nano)?sleep\s*\("),
        catches=(
            ("workers/a.cpp", "std::this_thread::sleep_for(10ms);"),
            ("tests/a.cpp", "  usleep(10);"),
            ("tests/a.cpp", "if (late) ::sleep(1);"),
        ),
        passes=(("transport/ucx/a.cpp", "// then sleep (on it)\nvoid wake::sleep(int);"),),
    ),
    Rule(
        "printing",
        "only the command line and examples print; all else logs or returns an error",
        pattern(
            r"\b(f|v|vf)?printf\s*\(|\bf?puts\s*\(|\bstd::(cout|cerr|clog)\b|\bfmt::print\b",
            where=in_product,
            unless=("actors/cli/", "schemas/base/assert.cpp", "transport/client/examples/"),
        ),
        catches=(
            ("workers/a.cpp", 'printf("x");'),
            ("workers/a.cpp", 'std::fprintf(stderr, "x");'),
            ("workers/a.cpp", "std::cerr << 1;"),
        ),
        passes=(
            ("actors/cli/a.cpp", 'printf("x");'),
            ("workers/a.cpp", "std::snprintf(b, 3, f);"),
            ("tests/a.cpp", "std::cout << 1;"),
        ),
    ),
    Rule(
        "rand",
        "randomness comes in as a seed",
        pattern(r"\b(s?rand|rand_r|drand48)\s*\("),
        catches=(("workers/a.cpp", "int x = rand();"), ("tests/a.cpp", "std::srand(1);")),
        passes=(("workers/a.cpp", "operand(1); auto p = random(seed);"),),
    ),
    Rule(
        "pure_core",
        "a pure core knows no clock, thread or lock: time comes in as a value",
        lambda source: pattern(
            r"\b(steady|system|high_resolution)_clock\b|\bclock_gettime\b|\brandom_device\b"
            r"|^\s*#include <(thread|mutex|condition_variable|future|shared_mutex|semaphore)>",
            where=lambda s: s.path.startswith(PURE) and not s.path.startswith("schemas/base/time"),
        )(source),
        catches=(
            ("eplb/a.cpp", "auto t = std::chrono::steady_clock::now();"),
            ("coordinator/core/a.cpp", "#include <mutex>"),
        ),
        passes=(("workers/engine/a.cpp", "#include <mutex>"),),
    ),
    Rule(
        "schema_name",
        "a JSON document names its schema as moetier.NOUN/NUMBER",
        pattern(
            r"""schema\\?["']?\]?\s*[:,=]+\s*\\?["'](?!moetier\.[a-z][a-z_]*/[1-9][0-9]*\\?["'])[^"'{]""",
            code=False,
            where=lambda source: in_product(source) or source.folder == "deploy",
        ),
        catches=(
            ("actors/a.cpp", 'json{{"schema", "moetier.status.v1"}}'),
            ("actors/a.cpp", r'''text = "{\"schema\":\"moetier-plan/1\"}";'''),
            ("deploy/a.json", '{"schema": "moetier.environment"}'),
            ("eplb/a.cpp", 'constexpr const char* k_schema = "moetier_plan/1";'),
        ),
        passes=(
            ("actors/a.cpp", 'json{{"schema", "moetier.log_level/1"}}'),
            ("actors/a.cpp", r'''text = "{\"schema\":\"moetier.ready/1\",\"a\":1}";'''),
            ("actors/a.cpp", r'''fmt::format(R"({{"schema":"{}","a":{}}})", name, a)'''),
            ("actors/a.cpp", 'fields("schema", given);'),
            ("deploy/a.json", '{"schema": "moetier.environment/1"}'),
        ),
    ),
    Rule(
        "open_end",
        f"a {_TO_DO} carries an issue number, {_TO_DO}(#12), or does not exist",
        pattern(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b(?!\(#\d+\))", code=False),
        catches=(("workers/a.cpp", f"// {_TO_DO}: later"), ("README.md", "FIX" + "ME")),
        passes=(("workers/a.cpp", f"// {_TO_DO}(#12): later"),),
    ),
    Rule(
        "workplace_path",
        "the tree names no path outside itself",
        pattern(rf"(?<![\w.}}]){_WORKPLACE}|{re.escape(_SHARED)}|(?<![\w.])/tmp/b_", code=False),
        catches=(
            ("deploy/a.sh", f"cd {_WORKPLACE}main"),
            ("README.md", f"see {_SHARED}/spec"),
        ),
        passes=(("deploy/a.sh", f"cd net{_WORKPLACE}x"),),
    ),
    Rule(
        "wildcard_bind",
        "nothing listens on every address by default",
        pattern(
            r"\b0\.0\.0\.0\b|\bINADDR_ANY\b|\bin6addr_any\b|\[::\]",
            code=False,
            where=lambda source: in_product(source) or source.folder == "deploy",
        ),
        catches=(
            ("actors/http/a.cpp", 'listen("0.0.0.0:80");'),
            ("deploy/a.yaml", "listen: '[::]:7400'"),
            ("actors/a.cpp", "address.sin_addr.s_addr = INADDR_ANY;"),
        ),
        passes=(
            ("actors/http/a.cpp", 'listen("127.0.0.1:80");'),
            ("deploy/a.sh", "version 10.0.0.0"),
        ),
    ),
    Rule(
        "python_width",
        "a line of Python has at most 120 columns",
        pattern(r"^.{121,}", code=False, where=lambda source: source.path.endswith(".py")),
        catches=(("tests/a.py", "x" * 121),),
        passes=(("tests/a.py", "x" * 120), ("README.md", "x" * 121)),
    ),
    Rule(
        "using_namespace",
        "a header opens no namespace for those who include it",
        pattern(
            r"^\s*using namespace\b",
            where=lambda source: source.path.endswith((".hpp", ".cuh", ".h")),
        ),
        catches=(("eplb/a.hpp", "using namespace std;"),),
        passes=(("eplb/a.cpp", "using namespace std::chrono_literals;"),),
    ),
)
