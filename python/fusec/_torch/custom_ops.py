"""Operators of other libraries, written as custom ops: which are, and what each is compiled to."""

import re
from typing import NamedTuple

import torch

from ..errors import InputError
from .errors import Refused
from .model_file import Value


class CustomOps(NamedTuple):
    """every: all operators outside aten become custom ops. sources: name -> a launcher's symbol, or an expression."""

    every: bool = False
    sources: dict = {}

    @staticmethod
    def of(option):
        """From what export() takes: True, False, or a dictionary of sources."""
        if isinstance(option, CustomOps):
            return option
        if not isinstance(option, dict):
            return CustomOps(bool(option))
        return CustomOps(sources={name.replace("::", "."): source for name, source in option.items()})

    def named(self, target):
        """The name in `sources` that means this overload (lib.op.default, lib.op or lib::op), or None."""
        return next((n for n in (target, target.rpartition(".")[0]) if n in self.sources), None)

    def take(self, target):
        return self.named(target) is not None or (self.every and not target.startswith("aten."))

    def check_names(self, targets):
        """Every name stands for an operator of the program."""
        unknown = set(self.sources) - {self.named(target) for target in targets}
        if unknown:
            known = ", ".join(sorted(t for t in targets if not t.startswith("aten."))) or "aten's operators alone"
            raise InputError(f"--custom-op: the program has no operator {sorted(unknown)[0]}; it has {known}")


def parse_sources(options):
    """--custom-op NAME=SOURCE, each."""
    sources = {}
    for option in options:
        name, equals, source = option.partition("=")
        if not (name.strip() and equals and source.strip()):
            raise InputError(f"--custom-op: found {option!r}, expected NAME=SYMBOL or NAME=EXPRESSION")
        sources[name.strip()] = source.strip()
    return sources


def write_custom_op(c, node, arguments, source):
    """One node, its types declared. Tensors are operands, in order; with an expression numbers are operands as well."""
    expression = source is not None and not re.fullmatch(r"[A-Za-z_]\w*", source)
    operands, attributes = [], {}
    for name, value in arguments.items():
        items = value if isinstance(value, list) else [value]
        if items and all(isinstance(x, Value) for x in items):
            operands.extend(items)
        elif expression and isinstance(value, (bool, int, float)):
            operands.append(value)
        elif value is not None and not isinstance(value, (torch.device, torch.layout)):
            attributes[name + "_" if name in ("symbol", "expr") else name] = value  # those two have a meaning
    results = node.meta["val"]
    several = not isinstance(results, torch.Tensor)
    pattern = None
    if expression:
        if several:
            raise Refused("an expression gives one result; this operator needs a launcher's symbol")
        attributes = {"expr": source}
        same = all(tuple(x.shape) == tuple(results.shape) for x in operands if isinstance(x, Value))
        pattern = "elemwise" if same else "broadcast"
    elif source is not None:
        attributes["symbol"] = source
    else:
        c.note(
            f"no source for the custom op {node.target}: the file can be looked at (fusec --emit=partition) but not "
            f"compiled; --custom-op {node.target}=SYMBOL names a launcher, =EXPRESSION says what it computes"
        )
    values = c.emit_several(
        node, str(node.target), operands, attributes, results if several else [results], declare=True, pattern=pattern
    )
    return values if several else values[0]
