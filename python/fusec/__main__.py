"""``python -m fusec``: compile, import, explain and doctor at the command line."""

from __future__ import annotations

import argparse
import json
import os
import sys
import typing
from typing import Any

import fusec

from . import _core
from ._options import CompileOptions

_FLAGS = {name for name, kind in typing.get_type_hints(CompileOptions).items() if kind is bool}
_LISTS = {"no_fuse", "no_fuse_node", "patterns", "disable_pattern", "disable_pass"}
_PAIRS = {"symbol", "limit"}
_NUMBERS: dict[str, type] = {"max_fused_ops": int, "max_args": int, "jobs": int, "timeout": float}
_PRODUCTS = (
    *("cu", "ptx", "cubin", "manifest", "partition", "plan", "ir", "report", "ledger"),
    *("dot", "svg", "html", "module"),
)


def main(arguments: list[str] | None = None) -> int:
    """Exit status: 0 good, 1 the input is wrong, 2 the command line is wrong, 3 something is missing."""
    try:
        given = _parser().parse_args(arguments)
        status: int = given.run(given)
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (fusec.UsageError, TypeError) as error:
        return _tell(error, 2)
    except fusec.PlatformError as error:
        return _tell(error, 3)
    except (fusec.FusecError, OSError) as error:
        return _tell(error, 1)


def _tell(error: Exception, status: int) -> int:
    print(f"error: {getattr(error, 'on_command_line', error)}", file=sys.stderr)
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m fusec", description="Fuses neural-network graphs into CUDA kernels.")
    parser.add_argument("--version", action="version", version=f"fusec {fusec.__version__}")
    words = parser.add_subparsers(required=True, metavar="COMMAND")
    compiler = words.add_parser("compile", help="compile a model file")
    compiler.add_argument("model", help="the model file (JSON); - is standard input")
    compiler.add_argument("-o", "--output", default="", help=".cu .ptx .cubin .dot .svg .json (manifest) .txt (ir) .fusec")
    compiler.add_argument("--emit", choices=_PRODUCTS, help="what is written, where the extension does not say")
    compiler.set_defaults(run=_compile)
    explainer = words.add_parser("explain", help="why nodes are, or are not, in one kernel")
    explainer.add_argument("model")
    explainer.add_argument("nodes", nargs="*", help="none: all groups")
    explainer.set_defaults(run=_explain)
    _add_importer(words)
    doctor = words.add_parser("doctor", help="what was found of NVRTC, driver, GPU and cache, and what to do")
    doctor.add_argument("--json", action="store_true")
    doctor.set_defaults(run=_doctor)
    for word in (compiler, explainer):
        _add_options(word)
    return parser


_IMPORT = """MODEL is MODULE.py:FACTORY, MODEL.pt2 or MODEL.onnx.

FACTORY is a function of no arguments, or a class, in a Python file (or an importable module). It returns
  module, example_args                    example_args: a tuple for forward(), or a dict of keyword arguments
  module, example_args, dynamic_shapes    as torch.export.export takes them; Dim names become the file's symbols
  module                                  with --inputs
MODEL.pt2 is what torch.export.save wrote.

--inputs lists one tensor per argument as dtype[sizes], a size a number or name=example or name=example:min..max:
  --inputs 'float16[rows=8:1..4096,512], int64[rows,16]'

An operator of another library becomes a custom op, compiled to a launcher of yours or to an expression:
  --custom-op mylib::scan=my_scan_launcher --custom-op 'mylib::gate=$0 * sigmoid(1.702 * $0)'

MODEL.onnx is an ONNX model, external data beside it. --custom-ops makes opaque custom ops of all nodes without a
counterpart. Sizes of symbolic dimensions and elements of inputs that decide shapes may be fixed:
  --dim batch=4 --dim tokens=1..4096 --elements 'axes=[1]'"""


def _add_importer(words: Any) -> None:
    importer = words.add_parser(
        "import",
        help="make a model file of a PyTorch module or an ONNX model",
        description=_IMPORT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = importer.add_argument
    add("model", metavar="MODEL")
    add("-o", "--output", required=True, metavar="FILE.json", help="weights go beside it as .safetensors")
    add("--inputs", metavar="SPEC", help="example arguments, where the factory gives none")
    add("--name", help="the model's name in the file; default: the module's class")
    add("--decompose", action="store_true", help="core ATen operators only: softmax, norms and attention are decomposed")
    add("--types", action="store_true", help="declare the dtype and shape of every value")
    add("--weights", choices=["file", "none"], default="file", help="none: constants without values, given at run time")
    add("--custom-ops", action="store_true", help="operators of other libraries become custom ops")
    add("--custom-op", action="append", default=[], metavar="NAME=SOURCE", help="that operator becomes one (see above)")
    add("--example", action="store_true", help="also FILE.in.safetensors and FILE.out.safetensors: PyTorch's results")
    add("--strict", action="store_const", const=True, help="trace with TorchDynamo")
    add("--dim", action="append", default=[], metavar="NAME=SIZE", help="of an ONNX model; LEAST..GREATEST: bounds")
    add("--elements", action="append", default=[], metavar="INPUT=JSON", help="of an ONNX model, for every call")
    importer.set_defaults(run=_import)


def _import(given: argparse.Namespace) -> int:
    is_onnx = given.model.endswith(".onnx")
    try:
        if is_onnx:
            from ._onnx.command_line import run
        else:
            from ._torch.command_line import run
    except ModuleNotFoundError as error:
        if error.name not in ("torch", "onnx"):
            raise
        what = "the package onnx" if is_onnx else "PyTorch"
        raise fusec.PlatformError(
            what=f"{what} is not installed", hint=f"pip install fusec[{error.name}]"
        ) from None
    run(given)
    print(f"wrote {given.output}", file=sys.stderr)
    return 0


def _add_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("options of a compilation (those of the program fusec)")
    for name in CompileOptions.__annotations__:
        if name == "progress":
            continue
        flag = "--" + name.replace("_", "-")
        if name in _FLAGS:
            group.add_argument(flag, action="store_true", default=argparse.SUPPRESS)
        elif name in _LISTS or name in _PAIRS:
            metavar = "NAME=VALUE" if name in _PAIRS else "NAME"
            group.add_argument(flag, action="append", default=argparse.SUPPRESS, metavar=metavar)
        else:
            group.add_argument(flag, type=_NUMBERS.get(name, str), default=argparse.SUPPRESS, metavar="VALUE")


def _options(given: argparse.Namespace) -> CompileOptions:
    options: dict[str, Any] = {k: v for k, v in vars(given).items() if k in CompileOptions.__annotations__}
    for name in _PAIRS & options.keys():
        options[name] = dict(_pair(name, text) for text in options[name])
    return typing.cast(CompileOptions, options)


def _pair(option: str, text: str) -> tuple[str, int]:
    name, equals, value = text.rpartition("=")
    if not equals or not value.lstrip("-").isdigit():
        raise fusec.UsageError(what=f"--{option}", found=repr(text), expected="NAME=VALUE")
    return name, int(value)


def _kind(given: argparse.Namespace) -> str:
    if given.emit:
        return str(given.emit)
    extension = os.path.splitext(given.output)[1]
    kinds = {".json": "manifest", ".txt": "ir", ".fusec": "module", "": "cu"}
    kind: str = kinds.get(extension, extension.removeprefix("."))
    if kind not in _PRODUCTS:
        raise fusec.UsageError(what="the extension of the output", found=repr(extension), expected="one of --help")
    return kind


def _compile(given: argparse.Namespace) -> int:
    kind = _kind(given) if given.output or given.emit else ""
    module = fusec.compile(given.model, **_options(given))
    if kind == "module":
        if given.output in ("", "-"):
            raise fusec.UsageError(what="--emit=module", expected="a file: -o model.fusec")
        module.save(given.output)
    elif kind:
        _write(given.output or "-", _product(module, kind))
    for warning in module.diagnostics:
        print(f"warning: {warning}", file=sys.stderr)
    print(repr(module)[len("<fusec.Module ") : -1], file=sys.stderr)
    return 0


def _product(module: fusec.Module, kind: str) -> str | bytes:
    if kind in ("ptx", "cubin", "ir"):
        product: str | bytes = getattr(module, kind)
        return product
    if kind in ("dot", "svg", "html"):
        picture: str = getattr(module._compilation, kind)()
        return picture
    return module.source if kind == "cu" else json.dumps(getattr(module, kind), indent=2) + "\n"


def _write(path: str, product: str | bytes) -> None:
    data = product.encode() if isinstance(product, str) else product
    if path == "-":
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        return
    partial = f"{path}.{os.getpid()}.partial"
    try:
        with open(partial, "wb") as file:
            file.write(data)
        os.replace(partial, path)
    finally:
        if os.path.exists(partial):
            os.unlink(partial)


def _explain(given: argparse.Namespace) -> int:
    options = _options(given)
    options.setdefault("no_nvrtc", True)
    print(fusec.compile(given.model, **options)._compilation.explain(given.nodes), end="")
    return 0


def _doctor(given: argparse.Namespace) -> int:
    findings = fusec.examine()
    print(_core.findings_json(findings) if given.json else _core.findings_text(findings), end="")
    return 0 if _core.can_compile(findings) else 3


if __name__ == "__main__":
    sys.exit(main())
