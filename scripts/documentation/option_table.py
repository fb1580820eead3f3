"""The options of a program, read from what --help prints: groups, names, values, choices, descriptions."""
import dataclasses, re

OPTION = re.compile(r"^  ((?:-\w,)?--?[A-Za-z][\w-]*)(?:=(\S+)|(\{\S*\}))?(?:\s{2,}(.*))?$")
HEADING = re.compile(r"^\S.*:\s*$")
WORD = re.compile(r"^  fusec ([a-z]+)(?: [A-Z]\S*)*\s{2,}(\S.*)$")  # "  fusec doctor    what was found of ..."


@dataclasses.dataclass
class Option:
    names: list
    value: str = ""  # "FILE", "none|tvm|full"; empty: a flag
    description: str = ""
    group: str = ""

    @property
    def takes_value(self):
        return bool(self.value) and not self.value.startswith("{")  # --random{0}: a value only after =

    @property
    def long(self):
        return next((n for n in self.names if n.startswith("--")), self.names[0])

    @property
    def choices(self):
        if re.fullmatch(r"[a-z]+(\|[a-z]+)+", self.value):
            return self.value.split("|")
        kinds = re.match(r"([a-z ]+?)(?:;|$)", self.description) if self.value == "KIND[=FILE]" else None
        return kinds.group(1).split() if kinds else []


def options(help_text):
    found, group = [], ""
    for line in help_text.split("\n"):
        match = OPTION.match(line)
        if match:
            names, value, own_default, description = match.groups()
            found.append(Option(names.split(","), value or own_default or "", description or "", group))
        elif HEADING.match(line):
            group = line.strip().rstrip(":")
        elif found and re.match(r"^\s{12,}\S", line):
            found[-1].description = (found[-1].description + " " + line.strip()).strip()
    return [o for o in found if o.group.lower() != "positionals"]


def words(help_text):
    """{word: what it does}: fusec doctor, ..."""
    return {m.group(1): m.group(2) for line in help_text.split("\n") if (m := WORD.match(line)) and m.group(1) != "model"}
