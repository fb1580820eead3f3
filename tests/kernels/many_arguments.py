"""Kernels with more than 4 KiB of parameters, which not every CUDA allows. Their tensors and sizes come through a table in
memory that small kernels fill first. Groups under `full` keep within the limit and need no table if they can be cut
earlier."""
from kernels import case
from kernels.case import RESULTS, Case


def tensor(name, shape, dtype="float32"):
    return case.tensor(name, dtype, *shape)


def chain():
    """256 nodes that read 513 tensors."""
    inputs, nodes, last = [tensor("x", [8])], [], "x"
    for i in range(256):
        inputs += [tensor(f"c{i}", [8], "bool"), tensor(f"b{i}", [8])]
        nodes.append({"name": f"w{i}", "op": "where", "inputs": [f"c{i}", last, f"b{i}"]})
        last = f"w{i}"
    return {"fusec": 1, "name": "chain", "inputs": inputs, "nodes": nodes, "outputs": [last]}


def concatenation(symbols):
    """One node of 520 tensors, or of 350 tensors with a size each."""
    count = 350 if symbols else 520
    inputs = [tensor(f"x{i}", [f"n{i}" if symbols else 1 + i % 3]) for i in range(count)]
    return {"fusec": 1, "name": "joined", "inputs": inputs,
            "symbols": {f"n{i}": {"max": 4, "hint": 1 + i % 4} for i in range(count)} if symbols else {},
            "nodes": [{"name": "y", "op": "concat", "inputs": [x["name"] for x in inputs], "attrs": {"dim": 0}},
                      {"name": "z", "op": "neg", "inputs": ["y"]}], "outputs": ["z"]}


def cases():
    """NVRTC is slow for hundreds of branches, so each model also has a row that checks launches without it."""
    found = []
    for name, graph, expected in (("chain", chain(), {"tvm": 3, "full": 2, "none": 256}),
                                  ("joined", concatenation(False), {"tvm": 3, "full": 4}),
                                  ("joined_symbols", concatenation(True), {"full": 4})):
        for strategy, launches in expected.items():
            for executed in (False, True):
                found.append(Case(f"{name} ({strategy})", graph, targets=("sm_80",), inputs="--random",
                                  options=("--strategy=" + strategy, "--limit=dimension-terms=400"),
                                  most=RESULTS if executed else {}, executed=executed,
                                  exactly={} if executed else {"launches of the partition": launches}))
    return found
