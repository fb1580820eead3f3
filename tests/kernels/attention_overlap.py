"""Attention by warpgroups on sm_90a, as machine code: the exponentials of a tile run while the products of the tile before
do, and warpgroups whose products do not hide them issue these in turn. Demanded are, of operands that TMA copies: no
empty group of products, all exponentials between the wait for the scores and the wait for the other products, no local
memory, and no advice of ptxas that it serialized products or added to them. Sizes are no multiple of a tile, and
persistent blocks make several tiles of queries."""
import re

import sass
from kernels.case import Case, model, node, tensor

HEADS = (64, 96, 128, 192, 256)
# A letter for each instruction that matters.
LETTERS = {"HGMMA": "H", "WARPGROUP.DEPBAR.LE gsb0, 0x1": "1", "WARPGROUP.DEPBAR.LE gsb0, 0x0": "0", "MUFU.EX2": "E",
           "F2FP": "P", "BAR.ARV": "T"}
# Scores, the values before, the wait for the scores (for all in the first tile), weights, the wait for the rest, packing.
# T: the turn is given to the other warpgroup.
OVERLAPPED = r"T?H+(T?0)?H+(T?0)?T?1(T?0)?E+0P+H+0P*"
LONGEST_FIRST = r"row0\w* = \(2 - 1 - tile\w* / 2\) \* 128"


def attention(dtype, head, causal, queries=131, keys=260, heads=2, key_heads=1):
    shape = {"q": (1, heads, queries, head), "k": (1, key_heads, keys, head), "v": (1, key_heads, keys, head)}
    return model([tensor(name, dtype, *size) for name, size in shape.items()],
                 [node("y", "scaled_dot_product_attention", "q", "k", "v", is_causal=causal, enable_gqa=True)])


def faults(run):
    text = run.text("sass")
    if text is not None:
        if re.search(r"HGMMA\.64x8x16\.F16 RZ", text):
            yield "an empty group of products"
        if re.search(r"\b(LDL|STL)\b", text):
            yield "local memory"
        found = re.findall("|".join(map(re.escape, LETTERS)), re.sub(r" +", " ", text))
        order = "".join(LETTERS[instruction] for instruction in found)
        if not re.fullmatch(OVERLAPPED, order):
            yield "exponentials do not overlap with products: " + re.sub(r"(.)\1+", r"\1+", order)
    blocks = run.case.chip["multiprocessors"]
    if [launch["grid"][0] for launch in run.json("manifest")["launches"]] != [str(blocks)]:
        yield f"not {blocks} blocks"
    yield from (f"ptxas says: {advice}" for advice in sass.advice(run.text("ptx"), run.target))


def cases():
    def overlapped(name, graph, chip, head, *texts):
        return Case(name, graph, targets=("sm_90a",), chip=chip, inputs="--random", also=faults, group=f"{head}",
                    texts=(("ptx", r"\bbar\.arrive\b", head <= 128), *texts))

    found = [overlapped(f"{dtype}, heads of {head}, causal {causal}", attention(dtype, head, causal), {"multiprocessors": 3},
                        head, ("cu", LONGEST_FIRST, causal))
             for head in HEADS for dtype in ("float16", "bfloat16") for causal in (False, True)]
    small_cache = {"multiprocessors": 4, "l2_bytes": 100000}
    return found + [overlapped("the longest first of two heads at a time", attention("bfloat16", 64, True, 260, 260, 4, 2),
                               small_cache, 64, ("cu", r"tile_in_order<2>\(tile", True))]
