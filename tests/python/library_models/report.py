"""The table of docs/models.md, from the results of check_library_models.py."""

from collections import Counter

WAYS = {"backend": "compile", "from_torch": "from_torch"}
HEAD = """# Models of libraries

<!-- Generated: tests/python/check_library_models.py --report=FILE --document=docs/models.md -->

Models of transformers, torchvision, timm and diffusers, small, with random weights, as `tests/python/library_models` makes
them. They run by `torch.compile(model, backend="fusec")` and by `fusec.from_torch` on the emulator, and are compared
with eager PyTorch. NAME`_decode` is one step of a decoder with a static KV cache.

- *left to eager*: operators that the backend leaves to eager, views apart.
- *launches*: kernels that one call of the compiled model launches.
- *calls of eager*: operators that eager PyTorch runs for the same call, views apart.
- *equal to eager*: by which of the two ways (`torch.compile`, `fusec.from_torch`). One that is neither here nor under
  *failed* was not run for this table, nor was a model of `tests/python/library_models` that is not in it.

An error is measured against float32. It is at most 1e-4 of the largest magnitude in a result, in bfloat16 at most twice the
error of eager PyTorch and 2^-8 of the largest magnitude. Models with a router are compared in float32 alone: in bfloat16 a
rounding sends a token to another expert, in eager PyTorch as in fusec.
"""


def left_to_eager(row):
    return max(len(row.get("left_to_eager", [])), len(row.get("eager_calls_left", [])))


def markdown(rows, failures):
    """rows: the results; failures(row): how one failed."""
    lines = [
        HEAD,
        *summary(rows, failures),
        "",
        "| model | library | dtype | left to eager | launches | calls of eager | equal to eager | failed |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in sorted(rows, key=lambda r: (r["library"], r["name"], r["dtype"] != "float32")):
        wrong = "; ".join(short(f) for f in failures(row))
        left = left_to_eager(row) if "launches" in row else ""
        equal = [name for way, name in WAYS.items() if row.get(way + "_difference", 2) <= 1]
        cells = [row["name"], row["library"], row["dtype"], left, row.get("launches", ""), row.get("eager_calls", "")]
        lines.append(f"| {' | '.join(map(str, [*cells, ', '.join(equal), wrong]))} |")
    kinds = Counter(short(text) for row in rows for text in set(row.get("left_to_eager", [])))
    if kinds:
        lines += ["", "Operators left to eager, and in how many rows:", ""]
        lines += [f"- {text}: {count}" for text, count in sorted(kinds.items())]
    return "\n".join(lines) + "\n"


def summary(rows, failures):
    yield "| library | dtype | models | equal to eager by compile | by from_torch | with nothing left to eager | failed |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for library, dtype in sorted(
        {(r["library"], r["dtype"]) for r in rows}, key=lambda key: (key[0], key[1] != "float32")
    ):
        some = [r for r in rows if (r["library"], r["dtype"]) == (library, dtype)]
        equal = [sum(row.get(way + "_difference", 2) <= 1 for row in some) for way in WAYS]
        whole = sum("launches" in r and left_to_eager(r) == 0 for r in some)
        failed = sum(bool(failures(r)) for r in some)
        yield f"| {library} | {dtype} | {len(some)} | {equal[0]} | {equal[1]} | {whole} | {failed} |"


def short(text):
    text = " ".join(text.split()).replace("|", "/")
    return text if len(text) <= 120 else text[:117] + "..."
