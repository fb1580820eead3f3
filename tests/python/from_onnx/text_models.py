"""ONNX models in their text form, for the tests of the importer."""

import fusec
from models import CACHE
from onnx import numpy_helper, parser


def model(text, opset=18, domains="", functions=""):
    """A model of the text form of ONNX: `g (float[n] x) => (float[n] y) { y = Relu(x) }`."""
    return parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}{domains}]>\n{text}\n{functions}')


def add_initializer(made, name, array):
    made.graph.initializer.append(numpy_helper.from_array(array, name))
    return made


def call(made, *tensors, device="reference", **options):
    imported = made if isinstance(made, fusec.ImportedModel) else fusec.from_onnx(made, **options)
    compiled = fusec.compile(imported, **({"no_nvrtc": True} if device == "reference" else {"cache_dir": CACHE}))
    return compiled(*tensors, device=device)


def ops(imported):
    return [row["op"] for row in imported._file.nodes]
