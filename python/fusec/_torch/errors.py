"""What a user did that cannot be imported, with all of it said at once."""

from ..errors import InputError


class TraceError(InputError):
    """PyTorch itself cannot trace the module or make the program functional."""


class Refused(Exception):
    """A handler declines one call of an operator (an argument that the format has no word for)."""


class SizeRefused(Refused):
    """The format cannot express a size. To decompose the operator would not help."""


SIZE = "a size"  # the target of a problem that is a size's and no operator's


def unmapped_message(problems):
    """One text for everything that has no counterpart: each operator's count, one node, where that node comes from."""
    sizes = [p for p in problems if p.target == SIZE]
    operators = [p for p in problems if p.target != SIZE]
    parts = []
    if operators:
        kinds = len({(p.target, p.reason) for p in operators})
        parts.append(f"{kinds} operator{'s' if kinds > 1 else ''} without a counterpart in the graph format:")
        parts += _listed(operators)
        parts.append(
            "hint: replace them in the module, or write an operator as a custom op with --custom-op NAME=SYMBOL (a "
            "launcher of your own computes it) or --custom-op NAME=EXPRESSION; --custom-ops writes all operators "
            "outside aten so, to look at the graph"
        )
    if sizes:
        parts.append("sizes that the graph format cannot express:")
        parts += _listed(sizes)
        parts.append(
            "hint: keep sizes that follow from the inputs' shapes: torch.where and a mask in place of x[x > 0], an "
            "integer argument with torch.export.Dim.DYNAMIC in place of tensor.item()"
        )
    return "\n".join(parts)


def _listed(problems):
    by_target = {}
    for problem in problems:
        by_target.setdefault((problem.target, problem.reason), []).append(problem)
    width = max(len(target) for target, _ in by_target)
    for (target, reason), found in sorted(by_target.items()):
        count = f"{len(found)} node{'s' if len(found) > 1 else ''}"
        where = f", from {found[0].source}" if found[0].source else ""
        yield f'  {target:<{width}}  {count}, for example "{found[0].node}"{where}: {reason}'
