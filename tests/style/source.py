"""A file of the tree as the style rules see it: its path, its lines, and for C++ the same lines
with comments and literals blanked."""

import re
from dataclasses import dataclass
from functools import cached_property

CPP_SUFFIXES = (".hpp", ".cpp", ".cuh", ".cu", ".h")

# In order: raw string, string, character, line comment, block comment. A character needs no letter
# or digit before it, so that 1'000 is a number.
_NOT_CODE = re.compile(
    r'R"(?P<d>[^()\\\s]{0,16})\(.*?\)(?P=d)"'
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9A-Za-z_])'(?:\\.|[^'\\\n])+'"
    r"|//[^\n]*"
    r"|/\*.*?\*/",
    re.DOTALL,
)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_WAIVER = re.compile(r"style: allow (\w+): \S+")


def _blank(match):
    return re.sub(r"[^\n]", " ", match.group(0))


@dataclass(frozen=True)
class Source:
    path: str  # from the root, with "/"
    text: str

    @property
    def is_cpp(self):
        return self.path.endswith(CPP_SUFFIXES)

    @property
    def folder(self):
        return self.path.split("/", 1)[0]

    @cached_property
    def lines(self):
        return self.text.split("\n")

    @cached_property
    def code_lines(self):
        """C++ without comments and literals, line for line; includes keep their names."""
        blanked = _NOT_CODE.sub(_blank, self.text).split("\n")
        return [
            raw if raw.lstrip().startswith("#include") else code
            for raw, code in zip(self.lines, blanked)
        ]

    @cached_property
    def comments(self):
        return " ".join(_COMMENT.findall(self.text))

    def allows(self, rule_name, line_number):
        """Whether `style: allow RULE: why` stands in that line or in the one above."""
        for line in self.lines[max(0, line_number - 2) : line_number]:
            match = _WAIVER.search(line)
            if match and match.group(1) == rule_name:
                return True
        return False
