"""``python -m fusec``: compile, import, explain and doctor at the command line."""

from __future__ import annotations

import argparse
import collections.abc
import json
import os
import re
import sys
import typing
from typing import Any

import fusec

from . import _core, _nvrtc
from ._compile import graph_of
from ._emissions import KINDS, emissions
from ._options import OPTIONS, CompileOptions, Option, core_options, plan_file
from ._replace_file import replace_file


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
    except fusec.UsageError as error:
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
    out = "the output; its extension says what: .cu .ptx .cubin .dot .svg .html .json (manifest) .txt (ir) .fusec (module)"
    compiler.add_argument("-o", "--output", default="", metavar="FILE", help=out)
    emit = compiler.add_argument("--emit", action="append", default=[], metavar="KIND[=FILE]")
    emit.help = f"{' '.join(KINDS)}; repeatable"
    compiler.set_defaults(run=_compile)
    explainer = words.add_parser("explain", help="why nodes are, or are not, in one kernel")
    explainer.add_argument("model", help="the model file (JSON); - is standard input")
    explainer.add_argument("nodes", nargs="*", help="none: all groups")
    explainer.add_argument("--json", action="store_true", help="print as JSON")
    explainer.set_defaults(run=_explain)
    _add_importer(words)
    doctor = words.add_parser("doctor", help="what was found of NVRTC, driver, GPU and cache, and what to do")
    doctor.add_argument("--json", action="store_true", help="print as JSON")
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
    for name, option in OPTIONS.items():
        if name != "progress":
            group.add_argument("--" + name.replace("_", "-"), default=argparse.SUPPRESS, **_argument(option))


def _argument(option: Option) -> dict[str, Any]:
    text = option.text.replace("%", "%%")
    if option.type is bool:
        return {"action": "store_true", "help": text}
    if _is_repeatable(option):
        return {"action": "append", "metavar": option.kind.metavar, "help": f"{text} Repeatable."}
    kind = option.type if option.type in (int, float) else str
    return {"type": kind, "metavar": "|".join(option.choices) or option.kind.metavar, "help": text}


def _is_repeatable(option: Option) -> bool:
    return typing.get_origin(option.type) in (collections.abc.Sequence, collections.abc.Mapping)


def _options(given: argparse.Namespace) -> CompileOptions:
    options: dict[str, Any] = {k: v for k, v in vars(given).items() if k in OPTIONS}
    for name in ("symbol", "limit"):
        if name in options:
            options[name] = dict(_pair(name, text) for text in options[name])
    return typing.cast(CompileOptions, options)


def _pair(option: str, text: str) -> tuple[str, int]:
    name, equals, value = text.rpartition("=")
    if not equals or not re.fullmatch("-?[0-9]+", value):
        raise fusec.UsageError(what=f"--{option}", found=repr(text), expected="NAME=VALUE")
    return name, int(value)


def _files_read(model: str, options: CompileOptions) -> list[str]:
    files = [model, plan_file(options.get("plan", "{}")), options.get("target"), options.get("tuning_db")]
    return [str(file) for file in (*files, *options.get("patterns", ())) if file not in (None, "-")]


def _compile(given: argparse.Namespace) -> int:
    options = _options(given)
    wanted = emissions(given.output, given.emit, _files_read(given.model, options))
    module = _compiled(given.model, options, {kind for kind, _ in wanted})
    products = [None if kind == "module" else _product(module, kind) for kind, _ in wanted]
    for (_, path), product in zip(wanted, products):  # everything is made before anything is written
        if product is None:
            module.save(path)
        else:
            _write(path, product)
    for warning in module.diagnostics:
        print(f"warning: {warning}", file=sys.stderr)
    print(repr(module)[len("<fusec.Module ") : -1], file=sys.stderr)
    return 0


def _compiled(path: str, options: CompileOptions, kinds: set[str]) -> fusec.Module:
    """Compiles by NVRTC what has kernels. Source is written without NVRTC, too, with a warning."""
    if kinds and not kinds & {"cu", "ptx", "cubin", "html", "module"}:
        options["no_nvrtc"] = True
    model = graph_of(path, options, core_options(options).resources)
    options.pop("name", None)
    try:
        return fusec.compile(model, **options)
    except fusec.PlatformError as error:
        if kinds & {"ptx", "cubin", "module"} or not _nvrtc.advice(core_options(options)):
            raise
        print(f"warning: the source is not proven to compile: {error.on_command_line}", file=sys.stderr)
        options["no_nvrtc"] = True
        return fusec.compile(model, **options)


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
    replace_file(path, lambda file: file.write(data))


def _explain(given: argparse.Namespace) -> int:
    options = _options(given)
    options.setdefault("no_nvrtc", True)
    print(fusec.compile(given.model, **options)._compilation.explain(given.nodes, given.json), end="")
    return 0


def _doctor(given: argparse.Namespace) -> int:
    findings = fusec.examine()
    print(_core.findings_json(findings) if given.json else _core.findings_text(findings), end="")
    return 0 if _core.can_compile(findings) else 3


if __name__ == "__main__":
    sys.exit(main())
