"""The options of a compilation: those of the command line, under the same names."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypedDict, get_type_hints

from . import _core, _nvrtc
from .errors import UsageError

Path = str | os.PathLike[str]


class CompileOptions(TypedDict, total=False):
    """Keyword arguments of :func:`fusec.compile` and of the functions that plan. Each is optional.

    Sizes in bytes may be written as texts: ``"512M"``, ``"2G"``.
    """

    strategy: Literal["none", "tvm", "full"]
    """``none``: one kernel for each node; ``tvm``: TVM's FuseOps alone; ``full`` (the default): patterns and further passes too."""
    arch: str
    """``sm_80``, ``sm_90a``, ... or ``native``: the GPU at hand. Default: that GPU, else ``sm_80``."""
    target: Path
    """The name or file of a target: sizes and rates for the cost model."""
    symbol: Mapping[str, int]
    """Values of symbols for costs and reports, else their hints."""
    max_fused_ops: int
    """Nodes of a group at most; 256."""
    max_args: int
    """Arguments of a group at most; 0 for the strategy's own limit."""
    no_fuse: Sequence[str]
    """Ops whose nodes stay alone."""
    no_fuse_node: Sequence[str]
    """Nodes that stay alone."""
    patterns: Sequence[Path | _core.Pattern]
    """Further fusion patterns: files, or :class:`fusec.Pattern` objects."""
    disable_pattern: Sequence[str]
    """Patterns that are not tried; ``["all"]`` for none."""
    disable_pass: Sequence[str]
    """Passes of ``full`` that are left out."""
    gemm: Literal["builtin", "cublaslt", "auto"]
    """Matrix products by generated kernels, by cuBLASLt, or by the faster of the two as predicted."""
    limit: Mapping[str, int]
    """Limits on a model's sizes in place of their defaults, by name."""
    plan: Mapping[str, Any] | Path
    """Compile with this (edited) plan: what :attr:`Module.plan` gave, or a file."""
    plan_deadline: float
    """Seconds of planning, after which the best plan so far is taken, with a warning."""
    tuning_db: Path
    """A file of measured configurations."""
    round_intermediates: bool
    """Round fused intermediates to their dtypes."""
    precise_math: bool
    """Exact math functions in place of fast approximations."""
    allow_tf32: bool
    """float32 products in one pass of tf32."""
    allow_atomics: bool
    """Float atomics: results may differ from run to run."""
    jobs: int
    """NVRTC compilations at a time; 0 for as many as there are processors."""
    max_memory: int | str
    """Bytes: end with an error where the call would add more memory to the process."""
    timeout: float
    """Seconds: end with an error where it takes longer."""
    max_file_size: int | str
    """Bytes of one text file that is read; 0 for no limit."""
    cache_dir: Path
    """Where NVRTC's results are kept; default: the user's cache folder."""
    cache_size: int | str
    """Bytes that the cache may become; 512M."""
    no_cache: bool
    """Compile everything anew."""
    no_nvrtc: bool
    """Emit source without compiling it: the result runs on the reference alone."""
    progress: Callable[[_core.Progress], None] | None
    """Called as the compilation goes on, from its threads; None for no progress bar either. What it raises ends it."""


_NUMBERS_OF_BYTES = ("max_memory", "max_file_size", "cache_size")
_OF_RESOURCES = ("timeout", "max_memory", "max_file_size", "limit")
_PATHS = ("target", "tuning_db", "cache_dir")


def core_options(options: CompileOptions, *, ptx: bool = False) -> _core.Options:
    """The library's options. Raises UsageError for a value of a wrong type, TypeError for an unknown name."""
    result = _core.Options()
    resources = _core.ResourceLimits()
    given: dict[str, Any] = dict(options)
    result.ptx = ptx and not given.pop("no_nvrtc", False)
    given.pop("no_nvrtc", None)
    no_cache = given.pop("no_cache", False)
    if not no_cache and "cache_dir" not in given:
        given["cache_dir"] = _core.users_cache_directory()
    if "arch" not in given and "target" not in given and _core.has_device():
        given["arch"] = "native"
    result.nvrtc_library = _nvrtc.library()
    for name, value in given.items():
        if name not in CompileOptions.__annotations__:
            raise TypeError(f"unexpected option {name!r}{_nearest(name)}")
        place: Any = resources if name in _OF_RESOURCES else result
        try:
            _assign(place, name, value)
        except TypeError:
            raise UsageError(what=f"option {name}", found=repr(value), expected=_type_of(name)) from None
    if no_cache:
        result.cache_dir = ""
    result.resources = resources
    return result


def _type_of(name: str) -> str:
    """The type of an option as users write it: `str`, `Mapping[str, int]`."""
    kind = get_type_hints(CompileOptions)[name]
    return re.sub(r"[\w.]+\.(?=[A-Z])", "", kind.__name__ if isinstance(kind, type) else str(kind))


def _assign(place: Any, name: str, value: Any) -> None:
    if name == "plan":
        place.plan = _plan_text(value)
    elif name == "patterns":
        place.patterns = [p for p in value if isinstance(p, _core.Pattern)]
        place.pattern_files = [os.fspath(p) for p in value if not isinstance(p, _core.Pattern)]
    elif name in _NUMBERS_OF_BYTES:
        setattr(place, name, _bytes(name, value))
    elif name in _PATHS:
        setattr(place, name, os.fspath(value))
    elif name in ("symbol", "limit"):
        setattr(place, name, dict(value))
    elif isinstance(value, Sequence) and not isinstance(value, str):
        setattr(place, name, list(value))
    elif value is None and name != "progress":
        raise TypeError
    else:
        setattr(place, name, value)


def _plan_text(plan: Mapping[str, Any] | Path) -> str:
    if isinstance(plan, Mapping):
        return json.dumps(plan)
    if isinstance(plan, str) and plan.lstrip().startswith("{"):
        return plan
    try:
        with open(plan, encoding="utf-8") as file:
            return file.read()
    except OSError as error:
        raise UsageError(what="option plan", found=str(error), expected="a plan, its JSON, or a file") from None


def _bytes(name: str, value: int | str) -> int:
    if isinstance(value, int):
        return value
    digits, unit = value.rstrip("KMGTkmgt"), value[-1:].upper()
    try:
        return int(digits) << {"K": 10, "M": 20, "G": 30, "T": 40}.get(unit, 0)
    except ValueError:
        raise UsageError(what=f"option {name}", found=repr(value), expected="a size: 1048576, '512M', '2G'") from None


def _nearest(name: str) -> str:
    import difflib

    near = difflib.get_close_matches(name, CompileOptions.__annotations__, 1)
    return f"; did you mean {near[0]!r}?" if near else ""
