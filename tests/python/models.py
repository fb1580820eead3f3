"""Models that the tests of the Python package share, and a cache of what NVRTC made of them."""
import functools
import json
import tempfile

import fusec

_folder = tempfile.TemporaryDirectory(prefix="fusec-python-tests-")
CACHE = _folder.name


def gated(dtype="float32", width=16):
    """y = silu(gate) * up over [tokens, width]."""
    b = fusec.ModelBuilder("gated")
    b.symbol("tokens", max=64)
    gate = b.input("gate", dtype, ["tokens", width])
    up = b.input("up", dtype, ["tokens", width])
    b.output(b.op("mul", b.op("silu", gate, name="act"), up, name="y"))
    return b.build()


def gated_bfloat16():
    return gated("bfloat16")


def linear():
    """y = relu(x w^T + bias), its weight and bias given at a call; sum = the rows' sums."""
    b = fusec.ModelBuilder("linear")
    b.symbol("rows", max=64)
    x = b.input("x", "float32", ["rows", 16])
    weight = b.constant("weight", "float32", [8, 16])
    bias = b.constant("bias", "float32", [8])
    y = b.op("relu", b.op("linear", x, weight, bias), name="y")
    b.output(y)
    b.output(b.op("sum", y, dim=[1], name="total"))
    return b.build()


def prepared():
    """y = x + exp(weight) * table: what is made of the constants alone is computed once."""
    b = fusec.ModelBuilder("prepared")
    x = b.input("x", "float32", [4, 4])
    weight = b.constant("weight", "float32", [4, 4])
    table = b.constant("table", "float32", [4, 4], [float(i) for i in range(16)])
    b.output(b.op("add", x, b.op("matmul", b.op("exp", weight), table), name="y"))
    return b.build()


def cache():
    """A model that writes its output into an input: state += x."""
    return fusec.Model.parse(
        json.dumps(
            {
                "fusec": 1,
                "name": "cache",
                "inputs": [
                    {"name": "state", "dtype": "float32", "shape": [8]},
                    {"name": "x", "dtype": "float32", "shape": [8]},
                ],
                "nodes": [{"name": "new", "op": "add", "inputs": ["state", "x"]}],
                "outputs": ["new"],
                "aliases": {"new": "state"},
            }
        )
    )


@functools.cache
def compiled(name, **options):
    return fusec.compile(globals()[name](), arch="sm_80", cache_dir=CACHE, **options)
