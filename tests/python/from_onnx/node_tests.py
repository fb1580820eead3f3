"""The onnx package's own tests of single nodes: which there are, and running one on the emulator."""

from __future__ import annotations

import functools
import os
import signal
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import fusec
import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

SECONDS = 120  # for one test


def names() -> list[str]:
    """The tests that the importer is held to."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "node_tests.txt")
    with open(path, encoding="utf-8") as file:
        return file.read().split()


@functools.cache
def tests() -> dict[str, Any]:
    """All node tests of the package, by name."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {test.name: test for test in load_model_tests(kind="node")}


def run(test: Any, cache: str = "", device: str = "emulator") -> None:
    """Imports, compiles and calls the model, and compares with the test's tolerance. Raises whatever goes wrong.

    Inputs whose elements decide shapes are not told to the importer: the module takes them at the call.
    """
    for given, wanted in test.data_sets:
        with _limit(SECONDS):
            options: Any = {"arch": "sm_80", "cache_dir": cache}
            if device == "reference":
                options = {"no_nvrtc": True}
            module = fusec.compile(fusec.from_onnx(test.model), **options)
            found = module(*_array(given), device=device)
        compare(list(found) if isinstance(found, tuple) else [found], _array(wanted), test.rtol, test.atol)


def _array(item: Any) -> Any:
    if isinstance(item, list):
        return [_array(x) for x in item]
    return numpy_helper.to_array(item) if isinstance(item, TensorProto) else item


def compare(found: Any, wanted: Any, rtol: float, atol: float) -> None:
    if isinstance(wanted, list):
        assert isinstance(found, list) and len(found) == len(wanted), f"{len(found)} results for {len(wanted)}"
        for a, b in zip(found, wanted):
            compare(a, b, rtol, atol)
        return
    if wanted is None:
        assert found is None
        return
    wanted = np.asarray(wanted)
    assert found.dtype == wanted.dtype, f"dtype {found.dtype}, expected {wanted.dtype}"
    assert found.shape == wanted.shape, f"shape {found.shape}, expected {wanted.shape}"
    dtype = wanted.dtype
    if dtype.kind not in "biuf":  # of ml_dtypes
        found, wanted = found.astype(np.float32), wanted.astype(np.float32)
    try:
        np.testing.assert_allclose(found, wanted, rtol=rtol, atol=atol)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{_units(found, wanted, dtype)}") from None


def _units(found: Any, wanted: Any, dtype: Any) -> str:
    """How far 16-bit floats are apart, in units in the last place."""
    bits = {"float16": 10, "bfloat16": 7}.get(dtype.name)
    if bits is None or not np.isfinite(found).all() or not np.isfinite(wanted).all():
        return ""
    found, wanted = found.astype(np.float64), wanted.astype(np.float64)
    unit = 2.0 ** (np.floor(np.log2(np.maximum(np.abs(wanted), 1e-4))) - bits)
    return f"at most {int(np.ceil((np.abs(found - wanted) / unit).max() - 1e-6))} units in the last place"


@contextmanager
def _limit(seconds: int) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TimeoutError(f"more than {seconds} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def opset_of(model: onnx.ModelProto) -> int:
    return next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), 0)
