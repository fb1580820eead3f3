"""What a user did that cannot be exported, with all of it said at once."""


class ExportError(Exception):
    """The model cannot be written in the graph format; the text says why and what would help."""


class Refused(Exception):
    """A handler declines one call of an operator (an argument that the format has no word for)."""


def unmapped_message(problems):
    """One text for every operator that has no counterpart: its count, one node, where that node comes from."""
    by_target = {}
    for problem in problems:
        by_target.setdefault((problem.target, problem.reason), []).append(problem)
    width = max(len(target) for target, _ in by_target)
    lines = [f"{len(by_target)} operator{'s' if len(by_target) > 1 else ''} without a counterpart in the graph format:"]
    for (target, reason), found in sorted(by_target.items()):
        count = f"{len(found)} node{'s' if len(found) > 1 else ''}"
        where = f", from {found[0].source}" if found[0].source else ""
        lines.append(f'  {target:<{width}}  {count}, for example "{found[0].node}"{where}: {reason}')
    lines.append(
        "hint: replace them in the module, or write them as custom ops with --custom-ops (their types are "
        "declared; such a model can be partitioned, and compiled once an external launcher is named)"
    )
    return "\n".join(lines)
