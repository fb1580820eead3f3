"""A row of the tables of kernels: a model, the targets that it is compiled for, and its budget; and how to write models.

A budget is plain data: figures of kernels/figures.py with their bounds. A bound is a number, or a function of the run
where it depends on other figures of the same run.
"""
import dataclasses
import math
import typing

TARGETS = ("sm_80", "sm_90a")
BITS = {"float64": 64, "int64": 64, "float32": 32, "int32": 32, "float16": 16, "bfloat16": 16, "int16": 16, "uint16": 16,
        "int8": 8, "uint8": 8, "bool": 8, "float8_e4m3fn": 8, "float8_e5m2": 8, "float8_e8m0fnu": 8, "int4": 4, "uint4": 4,
        "float4_e2m1fn": 4}
BYTES = {dtype: bits // 8 for dtype, bits in BITS.items()}
# What holds for all kernels, unless a case says otherwise (None: not checked).
CLEAN = {"findings": 0, "conflicts": 0, "local bytes": 0}
RESULTS = {"conflicts": None, "local bytes": None}  # of budgets of results and findings alone
FEW_MULTIPROCESSORS = {"multiprocessors": 4}  # a chip where small products have large tiles and persistent blocks


@dataclasses.dataclass
class Case:
    name: str
    model: dict
    most: dict = dataclasses.field(default_factory=dict)     # figure -> its greatest allowed value
    least: dict = dataclasses.field(default_factory=dict)    # figure -> its least allowed value
    exactly: dict = dataclasses.field(default_factory=dict)  # figure -> its only allowed value
    texts: tuple = ()     # (kind of text, regular expression, whether it must be found)
    recorded: dict = dataclasses.field(default_factory=dict)  # figure -> allowed ratio to recorded.json
    moved: int = 0        # bytes that recorded sectors are relative to; 0: the distinct ones
    also: typing.Callable = None   # a function of the run that returns further faults
    targets: tuple = TARGETS
    chip: dict = None              # a description of the target for the cost model
    options: tuple = ()            # of fusec and fusec-run; {folder} is that of the files
    files: dict = dataclasses.field(default_factory=dict)    # name -> document, written for the options
    run_options: tuple = ()        # of fusec-run alone
    sizes: dict = dataclasses.field(default_factory=dict)    # symbol -> value at the launch
    inputs: typing.Any = "--random=1"  # or {name: (dtype, shape, bytes)}
    verify: str = "--verify"       # "": only figures are checked
    or_rounded: typing.Callable = lambda text: False  # whether --round-intermediates decides after this message
    blocks: int = 0                # so many blocks of each kernel are executed, without verification; 0: all
    reads_outputs: bool = False    # figures are computed of the results (run.outputs)
    executed: bool = True          # False: only the texts that fusec emits are checked
    beside: "Case" = None          # a case whose figures bound this one's (run.beside)
    group: str = ""                # samples have cases of every group

    def budget(self):
        """(figure, bound, whether a value is within the bound) of all figures to check."""
        clean = CLEAN if self.executed else {}
        for bounds, holds in ((clean | self.most, lambda found, bound: found <= bound),
                              (self.least, lambda found, bound: found >= bound),
                              (self.exactly, lambda found, bound: found == bound)):
            yield from ((figure, bound, holds) for figure, bound in bounds.items() if bound is not None)


def tensor(name, dtype, *shape, **more):
    return {"name": name, "dtype": dtype, "shape": list(shape), **more}


def tensors(described):
    """{name: (dtype, shape)} as a list of tensors."""
    return [tensor(name, dtype, *shape) for name, (dtype, shape) in described.items()]


def node(name, op, *inputs, **attrs):
    return {"name": name, "op": op, "inputs": list(inputs)} | ({"attrs": attrs} if attrs else {})


def words(name, op, inputs, **attrs):
    """A node whose operands are the words of a text."""
    return node(name, op, *inputs.split(), **attrs)


def model(inputs, nodes, outputs=("y",), **more):
    return {"fusec": 1, "name": "m", "inputs": inputs, "nodes": nodes, "outputs": list(outputs), **more}


def element_count(shape):
    return math.prod(shape)
