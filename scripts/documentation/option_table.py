"""The options of a program, read from what --help prints: groups, names, values, choices, descriptions."""
import dataclasses, re

OPTION = re.compile(r"^\s{1,8}((?:-\w,\s*)?--?[A-Za-z][\w-]*)(.*)$")
HEADING = re.compile(r"^\S.*:\s*$")
WORD = re.compile(r"^  fusec ([a-z]+)(?: [A-Z]\S*)*\s{2,}(\S.*)$")  # "  fusec doctor    what was found of ..."


@dataclasses.dataclass
class Option:
    names: list
    value: str = ""  # "TEXT", "UINT:INT in [1 - 8]=256"; empty: a flag
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
        listed = re.search(r":\{([\w,.-]+)\}", self.value)
        kinds = re.search(r"KIND\[=FILE\]: ([a-z ]+?)(?:;|$)", self.description)
        return listed.group(1).split(",") if listed else kinds.group(1).split() if kinds else []


def options(help_text):
    found, group = [], ""
    for line in help_text.split("\n"):
        match = OPTION.match(line)
        if match:
            names = [name.strip() for name in match.group(1).split(",")]
            spec, _, description = match.group(2).partition("  ") if "  " in match.group(2) else (match.group(2), "", "")
            value, description = split_value(spec.strip(), description.strip())
            found.append(Option(names, value, description, group))
        elif HEADING.match(line):
            group = line.strip().rstrip(":")
        elif found and re.match(r"^\s{12,}\S", line):
            found[-1].description = (found[-1].description + " " + line.strip()).strip()
    return [o for o in found if o.group.lower() != "positionals"]


def split_value(spec, description):
    """CLI11 puts one blank between a long value and its description: "FLOAT:NONNEGATIVE SECONDS: end with ..."."""
    early = re.match(r"^((?:TEXT|U?INT|FLOAT)(?::NONNEGATIVE)?) (?!\.\.\.|\[|in )(.+)$", spec)
    return (early.group(1), (early.group(2) + " " + description).strip()) if early else (spec, description)


def words(help_text):
    """{word: what it does}: fusec doctor, ..."""
    return {m.group(1): m.group(2) for line in help_text.split("\n") if (m := WORD.match(line)) and m.group(1) != "model"}
