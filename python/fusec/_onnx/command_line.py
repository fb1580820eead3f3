"""What `python -m fusec import model.onnx` is told on its command line."""

from __future__ import annotations

import argparse
import json
import re
from typing import Any

import numpy as np
import onnx

from ..errors import InputError, UsageError
from .load import Opened, read


def run(given: argparse.Namespace) -> None:
    """`python -m fusec import` with parsed arguments."""
    from .. import from_onnx

    unfit = [flag for flag in ("inputs", "decompose", "example", "strict", "custom_op") if getattr(given, flag)]
    if unfit:
        raise UsageError(f"--{unfit[0].replace('_', '-')} is for PyTorch modules, not for an ONNX model")
    opened = read(given.model)
    imported = from_onnx(
        given.model,
        name=given.name,
        dims=dict(_dimension(text) for text in given.dim),
        inputs=dict(_elements(opened, text) for text in given.elements),
        allow_custom=given.custom_ops,
        types=given.types,
    )
    imported.save(given.output, weights=given.weights == "file")


def _dimension(text: str) -> tuple[str, int | tuple[int, int]]:
    """NAME=SIZE or NAME=LEAST..GREATEST"""
    found = re.fullmatch(r"(.+)=(\d+)(?:\.\.(\d+))?", text)
    if not found:
        raise UsageError(f"--dim: found {text!r}, expected NAME=SIZE or NAME=LEAST..GREATEST")
    return found[1], (int(found[2]), int(found[3])) if found[3] else int(found[2])


def _elements(opened: Opened, text: str) -> tuple[str, Any]:
    """INPUT=JSON, a number or a list of them"""
    name, _, values = text.partition("=")
    kinds = {i.name: i.type.tensor_type.elem_type for i in opened.model.graph.input}
    if name not in kinds:
        raise InputError(f"--elements: found {name!r}, expected an input: {', '.join(kinds)}")
    try:
        return name, np.array(json.loads(values), onnx.helper.tensor_dtype_to_np_dtype(kinds[name]))
    except (ValueError, KeyError) as error:
        raise UsageError(f"--elements {text}: {error}") from None
