"""The options of a compilation: those of the command line, under the same names.

:class:`CompileOptions` is the one table of them. Checks, errors, its docstring and the command line's --help follow it.
"""

from __future__ import annotations

import json
import numbers
import operator
import os
import re
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple, TypedDict, get_args, get_origin, get_type_hints

from . import _core, _nvrtc
from .errors import FusecError, InputError, UsageError

Path = str | os.PathLike[str]


class Kind(NamedTuple):
    """What values an option takes. ``read`` gives the value for the library, or raises TypeError or ValueError."""

    read: Callable[[Any], Any]
    expected: str = ""  # in errors; "": the option's type
    metavar: str = "VALUE"  # in --help


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    value.encode()  # raises ValueError for half of a surrogate pair, which the library has no bytes for
    return value


def _name(value: Any) -> str:
    if not value:
        raise ValueError
    return _text(value)


def _path(value: Any) -> str:
    return _text(os.fspath(value))


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _whole(least: int, most: int) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        if isinstance(value, bool) or not least <= operator.index(value) <= most:
            raise ValueError
        return operator.index(value)

    return read


def _seconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError
    seconds = float(value)
    if not 0 <= seconds <= sys.float_info.max:  # nan is in no range
        raise ValueError
    return seconds


def _size(value: Any) -> int:
    if not isinstance(value, str):
        return _whole(0, 2**63 - 1)(value)
    found = re.fullmatch(r"([0-9]+) *(?:([kmgtpe])i?)?b?", value, re.IGNORECASE)
    if not found:
        raise ValueError
    return _size(int(found[1]) << 10 * " kmgtpe".index((found[2] or " ").lower()))


def _names(value: Any) -> list[str]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise TypeError
    return [_text(name) for name in value]


def _numbers(value: Any) -> dict[str, int]:
    if not isinstance(value, Mapping):
        raise TypeError
    return {_text(name): _whole(-(2**63), 2**63 - 1)(number) for name, number in value.items()}


def _patterns(value: Any) -> list[str | _core.Pattern]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise TypeError
    return [p if isinstance(p, _core.Pattern) else _path(p) for p in value]


def plan_file(plan: Any) -> str | None:
    """The file that the option ``plan`` names; None where it is a plan, or its JSON."""
    is_json = isinstance(plan, str) and plan.lstrip().startswith("{")
    return None if is_json or isinstance(plan, Mapping) else _path(plan)


def _plan(value: Any) -> str:
    path = plan_file(value)
    if path is None:
        return _text(value) if isinstance(value, str) else json.dumps(value)
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        found = getattr(error, "strerror", None) or str(error)
        raise InputError(file=path, what="the plan cannot be read", found=found) from None


def _callback(value: Any) -> Callable[[_core.Progress], None] | None:
    if value is not None and not callable(value):
        raise TypeError
    called: Callable[[_core.Progress], None] | None = value
    return called


_MOST = 2**31 - 1
_Text = Kind(_text)
_File = Kind(_path, metavar="FILE")
_Count = Kind(_whole(0, _MOST), f"a whole number from 0 to {_MOST}", "N")
_Bool = Annotated[bool, Kind(_flag)]
_Names = Annotated[Sequence[str], Kind(_names, metavar="NAME")]
_Numbers = Annotated[Mapping[str, int], Kind(_numbers, metavar="NAME=VALUE")]
_Seconds = Annotated[float, Kind(_seconds, "a number of seconds, not negative", "SECONDS")]
_Bytes = Annotated[int | str, Kind(_size, "a size in bytes: 1048576, '512M', '2G'", "SIZE")]


class CompileOptions(TypedDict, total=False):
    """Keyword arguments of :func:`fusec.compile` and of the functions that plan. Each is optional."""

    strategy: Annotated[
        Literal["none", "tvm", "full"],
        _Text,
        "none: one kernel for each node; tvm: TVM's FuseOps alone; full (the default): patterns and further passes too.",
    ]
    name: Annotated[
        str,
        Kind(_name, "a name", "NAME"),
        "The model's name in what is emitted. Default: its own. A model with registered ops needs registry= for it.",
    ]
    arch: Annotated[str, _Text, "sm_80, sm_90a, ... or native: the GPU at hand. Default: that GPU, else sm_80."]
    target: Annotated[Path, _File, "The name or file of a target: sizes and rates for the cost model. Default: by arch."]
    symbol: Annotated[_Numbers, "Values of symbols for costs and reports. Default: the hints in the model."]
    max_fused_ops: Annotated[
        int,
        Kind(_whole(1, _MOST), f"a whole number from 1 to {_MOST}", "N"),
        "Nodes of a group at most, those of parts that nothing connects counted each for itself. Default: 256.",
    ]
    max_args: Annotated[int, _Count, "Arguments of a group at most. Default: 0, the strategy's own limit."]
    no_fuse: Annotated[_Names, "Ops whose nodes stay alone."]
    no_fuse_node: Annotated[_Names, "Nodes that stay alone."]
    patterns: Annotated[
        Sequence[Path | _core.Pattern],
        Kind(_patterns, metavar="FILE"),
        "Further fusion patterns: files, or (from Python) fusec.Pattern objects.",
    ]
    disable_pattern: Annotated[_Names, "Patterns that are not tried; all for none."]
    disable_pass: Annotated[_Names, "Passes of the strategy full that are left out."]
    gemm: Annotated[
        Literal["builtin", "cublaslt", "auto"],
        _Text,
        "Matrix products by generated kernels (builtin, the default), by cuBLASLt, or by the faster as predicted (auto).",
    ]
    limit: Annotated[_Numbers, "Limits on a model's sizes in place of their defaults (docs/limits.md)."]
    plan: Annotated[
        Mapping[str, Any] | Path,
        Kind(_plan, "a plan as a dict, its JSON, or a file", "FILE"),
        "Compile with this (edited) plan: a file, or (from Python) what Module.plan gave.",
    ]
    plan_deadline: Annotated[
        _Seconds, "Seconds of planning, after which the best plan so far is taken, with a warning. Default: 0, none."
    ]
    tuning_db: Annotated[Path, _File, "A file of measured configurations, from fusec-run --tune."]
    round_intermediates: Annotated[_Bool, "Round fused intermediates to their dtypes (docs/numerics.md)."]
    precise_math: Annotated[_Bool, "Exact math functions in place of fast approximations."]
    allow_tf32: Annotated[_Bool, "float32 products and convolutions in one pass of tf32."]
    allow_atomics: Annotated[_Bool, "Float atomics: results may differ from run to run (no kernel has such a form yet)."]
    jobs: Annotated[int, _Count, "NVRTC compilations at a time. Default: 0, as many as there are processors."]
    max_memory: Annotated[
        _Bytes, "Bytes: end with an error where the call would add more memory to the process. Default: 0, no limit."
    ]
    timeout: Annotated[_Seconds, "Seconds: end with an error where it takes longer. Default: 0, no limit."]
    max_file_size: Annotated[_Bytes, "Bytes of the largest text file that is read; 0 for no limit. Default: 512M."]
    cache_dir: Annotated[
        Path,
        Kind(_path, metavar="FOLDER"),
        "Where NVRTC's results are kept. Default: $XDG_CACHE_HOME/fusec or ~/.cache/fusec.",
    ]
    cache_size: Annotated[_Bytes, "Bytes that the cache may have; what was not used for the longest time goes. Default: 512M."]
    no_cache: Annotated[_Bool, "Compile everything anew."]
    no_nvrtc: Annotated[_Bool, "Emit source without compiling it: the result runs on the reference alone."]
    progress: Annotated[
        Callable[[_core.Progress], None] | None,
        Kind(_callback),
        "Called as the compilation goes on, from its threads; None for no progress bar either. What it raises ends it.",
    ]


class Option(NamedTuple):
    """A row of the table."""

    type: Any
    kind: Kind
    text: str

    @property
    def type_text(self) -> str:
        """The type as users write it: `str`, `Mapping[str, int]`, `'none' | 'tvm' | 'full'`."""
        if self.choices:
            return " | ".join(map(repr, self.choices))
        return re.sub(r"[\w.]+\.(?=[A-Z])", "", self.type.__name__ if isinstance(self.type, type) else str(self.type))

    @property
    def choices(self) -> tuple[str, ...]:
        return get_args(self.type) if get_origin(self.type) is Literal else ()


def _table() -> dict[str, Option]:
    hints = get_type_hints(CompileOptions, include_extras=True)
    return {name: Option(hint.__origin__, *hint.__metadata__) for name, hint in hints.items()}


OPTIONS = _table()
CompileOptions.__doc__ = (
    f"{CompileOptions.__doc__}\n\nSizes in bytes may be texts: '512M', '2G'. Flags are False by default.\n"
    + "".join(
        f"\n{name}: {option.type_text}\n{textwrap.indent(textwrap.fill(option.text, 96), '    ')}"
        for name, option in OPTIONS.items()
    )
)

_OF_RESOURCES = ("timeout", "max_memory", "max_file_size", "limit")


def core_options(options: CompileOptions, *, ptx: bool = False) -> _core.Options:
    """The library's options.

    Raises UsageError for a value that an option does not take, TypeError for an unknown name, InputError for a plan that
    cannot be read.
    """
    result = _core.Options()
    resources = _core.ResourceLimits()
    given = {name: _read(name, value) for name, value in dict(options).items()}
    result.ptx = ptx and not given.pop("no_nvrtc", False)
    for unused in ("no_nvrtc", "name"):
        given.pop(unused, None)
    if given.pop("no_cache", False):
        given["cache_dir"] = ""
    elif "cache_dir" not in given:
        given["cache_dir"] = _core.users_cache_directory()
    if "arch" not in given and "target" not in given and _core.has_device():
        given["arch"] = "native"
    result.nvrtc_library = _nvrtc.library()
    if "patterns" in given:
        result.pattern_files = [p for p in given["patterns"] if isinstance(p, str)]
        given["patterns"] = [p for p in given["patterns"] if not isinstance(p, str)]
    for name, value in given.items():
        setattr(resources if name in _OF_RESOURCES else result, name, value)
    result.resources = resources
    return result


def _read(name: Any, value: Any) -> Any:
    if name not in OPTIONS:
        raise TypeError(f"unexpected option {name!r}{_nearest(name)}")
    option = OPTIONS[name]
    try:
        return option.kind.read(value)
    except FusecError:
        raise
    except (TypeError, ValueError, OverflowError):
        expected = option.kind.expected or option.type_text
        raise UsageError(what=f"option {name}", found=repr(value), expected=expected) from None


def require_device(device: Any) -> None:
    """Raises UsageError for what is no device that calls run on; None is the default."""
    if device is not None and not (isinstance(device, str) and device in ("cuda", "emulator", "reference")):
        raise UsageError(what="device", found=repr(device), expected="'cuda', 'emulator' or 'reference'")


def _nearest(name: Any) -> str:
    import difflib

    near = difflib.get_close_matches(str(name), OPTIONS, 1)
    return f"; did you mean {near[0]!r}?" if near else ""
