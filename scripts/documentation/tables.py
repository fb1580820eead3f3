"""What the programs say of themselves, as the generators of the documentation read it."""
import json, os, subprocess

PLAIN = {**os.environ, "NO_COLOR": "1", "COLUMNS": "100"}


class Programs:
    def __init__(self, fusec, fusec_run):
        self.fusec, self.fusec_run = fusec, fusec_run

    def output(self, *arguments, program=None):
        return subprocess.run([program or self.fusec, *arguments], check=True, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, encoding="utf-8", env=PLAIN).stdout

    def listed(self, what):
        """The rows of --list-ops, --list-patterns, ..."""
        return json.loads(self.output(f"--list-{what}", "--json"))


def families(ops):
    """{family: rows}, in the order of the table."""
    found = {}
    for row in ops:
        found.setdefault(row["family"], []).append(row)
    return found


class Operands:
    """What the table says of an op's operands: "weight?" may be absent, of "tensors*" there are any number, of
    "tensors+" one or more, and of "indices?*" any number, absent ones among them."""

    def __init__(self, row):
        listed = row["operands"]
        self.repeated = bool(listed) and listed[-1][-1] in "*+"
        fixed = listed[:-1] if self.repeated else listed
        self.names = [name.rstrip("?*+") for name in fixed]
        self.optional = [name.endswith("?") for name in fixed]
        self.least = max((i + 1 for i, optional in enumerate(self.optional) if not optional), default=0)
        if self.repeated:
            self.rest, self.rest_optional = listed[-1].rstrip("?*+"), "?" in listed[-1]
            self.least = len(fixed) + (listed[-1].endswith("+"))
