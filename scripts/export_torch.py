#!/usr/bin/env python3
"""Converts a PyTorch model to the fusec graph format: model.json, and model.safetensors with its weights beside it.

  export_torch.py MODULE.py:FACTORY -o model.json [--inputs SPEC]
  export_torch.py MODEL.pt2 -o model.json

FACTORY is a function of no arguments, or a class, in a Python file (or an importable module). It returns
  module, example_args                    example_args: a tuple for forward(), or a dict of keyword arguments
  module, example_args, dynamic_shapes    as torch.export.export takes them; Dim names become the file's symbols
  module                                  with --inputs
MODEL.pt2 is what torch.export.save wrote.

--inputs lists one tensor per argument as dtype[sizes], a size a number or name=example or name=example:min..max:
  --inputs 'float16[rows=8:1..4096,512], int64[rows,16]'

The module is put into eval mode and traced by torch.export; what it writes to its buffers (a KV cache) becomes an input
and an aliased output; an integer argument that may vary becomes an input of shape [n, 0], which has no elements and
whose first size is the integer. Operators that the format has stay whole (linear, layer_norm,
scaled_dot_product_attention, ...); the others are decomposed, and those for which that does not help are listed
together. Tested with PyTorch 2.15; needs 2.6 or newer.

As a library (with this folder on sys.path):
  import export_torch
  export_torch.export(module, args, "model.json", dynamic_shapes=...)

An operator of another library becomes a custom op, compiled to a launcher of yours or to an expression:
  --custom-op mylib::scan=my_scan_launcher --custom-op 'mylib::gate=$0 * sigmoid(1.702 * $0)'
"""

import argparse
import importlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile

try:
    import torch
except ImportError:
    if {"-h", "--help"} & set(sys.argv[1:]):
        print(__doc__)
        sys.exit(0)
    sys.exit("export_torch.py: PyTorch is not installed for this Python; `pip install torch` brings it")

from torch_frontend.check import check
from torch_frontend.convert import Converter
from torch_frontend.custom_ops import CustomOps, parse_sources
from torch_frontend.errors import ExportError, TraceError, unmapped_message
from torch_frontend.example import save_example
from torch_frontend.model_file import DTYPES
from torch_frontend.program import capture, lower


def export(
    module,
    args,
    path,
    *,
    kwargs=None,
    dynamic_shapes=None,
    name=None,
    decompose=False,
    weights="file",
    types=False,
    custom_ops=False,
    strict=False,
):
    """Writes `module`, traced with the example arguments, to `path` and its weights beside it; returns `path`.

    decompose: core ATen operators only. weights: "file", or "none" to leave them for run time. types: declare every
    value's dtype and shape. custom_ops: True writes operators of other libraries as custom ops; a dictionary, operator
    name -> launcher's symbol or expression, those it names. strict: trace with TorchDynamo, which is otherwise done
    where the plain way of tracing fails. Raises ExportError."""
    args, kwargs = ((), {**args, **(kwargs or {})}) if isinstance(args, dict) else (tuple(args), kwargs or {})

    def attempt(strict):
        program, declared = capture(module, args, kwargs, dynamic_shapes, strict)
        return export_program(
            program,
            path,
            declared=declared,
            name=name or type(module).__name__,
            decompose=decompose,
            weights=weights,
            types=types,
            custom_ops=custom_ops,
        )

    if strict:
        return attempt(strict=True)
    try:
        return attempt(strict=False)
    except TraceError as error:
        try:
            attempt(strict=True)
        except ExportError:
            raise error from None
        print("note: traced with TorchDynamo (--strict), since the plain way of tracing failed", file=sys.stderr)
        return path


def export_program(
    program, path, *, declared=None, name=None, decompose=False, weights="file", types=False, custom_ops=False
):
    """The same for a torch.export.ExportedProgram."""
    name = name or os.path.splitext(os.path.basename(path))[0]
    custom = CustomOps.of(custom_ops)

    def convert(lowered):
        return Converter(lowered, declared, name, types, custom).run()

    lowered, problems = lower(
        program, lambda p: convert(p).problems, decompose, lambda target: custom.named(target) is not None
    )
    custom.check_names({str(n.target) for n in lowered.graph.nodes if n.op == "call_function"})
    if problems:
        raise ExportError(unmapped_message(problems))
    converted = convert(lowered)
    if not converted.file.outputs:
        raise ExportError("the module returns no tensor and writes to no buffer: there is nothing to export")
    for note in converted.notes:
        print(f"note: {note}", file=sys.stderr)
    converted.file.write(path, weights)
    errors = check(path)
    if errors:
        raise ExportError(
            "the exporter wrote a file that breaks the format's rules (please report it):\n  " + "\n  ".join(errors)
        )
    return path


def parse_inputs(text):
    """--inputs: example tensors and their dynamic_shapes."""
    dtypes = {name: dtype for dtype, name in DTYPES.items()}
    sizes, dims, tensors, shapes = {}, {}, [], []
    for dtype, body in re.findall(r"(\w+)\s*\[([^\]]*)\]", text):
        if dtype not in dtypes:
            raise ExportError(f"--inputs: {dtype!r} is no dtype; known are {', '.join(dtypes)}")
        shape, dynamic = [], {}
        for axis, size in enumerate(filter(None, (s.strip() for s in body.split(",")))):
            found = re.fullmatch(r"(?:(\d+)|([A-Za-z_]\w*)(?:=(\d+)(?::(\d+)\.\.(\d+))?)?)", size)
            if not found or (found[2] and not found[3] and found[2] not in sizes):
                raise ExportError(f"--inputs: {size!r} is no size: a number, name=example or name=example:min..max")
            if found[2]:
                if found[3]:
                    sizes[found[2]] = int(found[3])
                    bounds = {"min": int(found[4]), "max": int(found[5])} if found[4] else {}
                    dims[found[2]] = torch.export.Dim(found[2], **bounds)
                dynamic[axis] = dims[found[2]]
            shape.append(int(found[1]) if found[1] else sizes[found[2]])
        kind = dtypes[dtype]
        tensors.append(torch.randn(shape).to(kind) if kind.is_floating_point else torch.zeros(shape, dtype=kind))
        shapes.append(dynamic or None)
    if not tensors:
        raise ExportError("--inputs: nothing like dtype[sizes] in it")
    return tuple(tensors), tuple(shapes) if any(shapes) else None


def load_factory(text):
    """What MODULE.py:FACTORY names, called."""
    file, _, attribute = text.rpartition(":")
    if file.endswith(".py"):
        if not os.path.isfile(file):
            raise ExportError(f"{file} does not exist")
        sys.path.insert(0, os.path.dirname(os.path.abspath(file)))
        spec = importlib.util.spec_from_file_location(os.path.splitext(os.path.basename(file))[0], file)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    elif file:
        sys.path.insert(0, os.getcwd())
        module = importlib.import_module(file)
    else:
        raise ExportError(f"{text!r} is neither MODULE.py:FACTORY nor a .pt2 file")
    if not hasattr(module, attribute):
        raise ExportError(f"{file} has no {attribute!r}")
    return getattr(module, attribute)()


def load_program(path):
    """The program in a .pt2 file."""
    try:
        return torch.export.load(path)
    except Exception as error:  # no such file, another format, a class of the results that is not registered here
        raise ExportError(f"{path} cannot be read as a program of torch.export.save: {error}") from error


def find_program(name, given):
    """fusec or fusec-run: as given, as built in this checkout, or on the PATH."""
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    built = [os.path.join(root, "build", preset, "bin", name) for preset in ("release", "dev")]
    return next((p for p in [given, *built, shutil.which(name)] if p and os.path.isfile(p)), None)


def check_with_fusec(path, fusec=None):
    """Has fusec read the file and infer every type: its message where it objects, else None. No fusec, no message."""
    program = find_program("fusec", fusec)
    if program is None:
        print("note: no fusec found (build it first); only the structural check was done", file=sys.stderr)
        return None
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [program, path, f"--emit=partition={folder}/partition.json"], capture_output=True, text=True
        )
    return None if done.returncode == 0 else done.stderr.strip()


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, usage=argparse.SUPPRESS
    )
    parser.add_argument("model", metavar="MODULE.py:FACTORY | MODEL.pt2")
    parser.add_argument(
        "-o", "--output", required=True, metavar="FILE", help="the .json to write; weights go beside it as .safetensors"
    )
    parser.add_argument("--inputs", metavar="SPEC", help="example arguments (see above), where the factory gives none")
    parser.add_argument("--name", help="the model's name in the file (default: the module's class)")
    parser.add_argument(
        "--decompose", action="store_true", help="core ATen operators only: softmax, norms, attention taken apart"
    )
    parser.add_argument(
        "--types", action="store_true", help="declare the dtype and shape of every value, for fusec to verify"
    )
    parser.add_argument(
        "--weights", choices=["file", "none"], default="file", help="none: constants without values, given at run time"
    )
    parser.add_argument("--custom-ops", action="store_true", help="write operators of other libraries as custom ops")
    parser.add_argument(
        "--custom-op",
        action="append",
        default=[],
        metavar="NAME=SOURCE",
        help="write the operator NAME (lib::op) as a custom op. SOURCE is the symbol of its launcher, or an expression "
        "of its arguments in order, '$0 * sigmoid($1)', for an operator that works element by element",
    )
    parser.add_argument(
        "--example",
        action="store_true",
        help="also write FILE.in.safetensors and FILE.out.safetensors: the example arguments and PyTorch's results",
    )
    parser.add_argument(
        "--strict", action="store_true", help="trace with TorchDynamo instead of running the Python code"
    )
    parser.add_argument("--check", action="store_true", help="also have fusec read the file and infer every type")
    parser.add_argument(
        "--fusec", metavar="PROGRAM", help="the fusec that --check runs (default: build/*/bin, then PATH)"
    )
    options = parser.parse_args(arguments)
    try:
        common = dict(
            name=options.name,
            decompose=options.decompose,
            weights=options.weights,
            types=options.types,
            custom_ops=CustomOps.of(parse_sources(options.custom_op))._replace(every=options.custom_ops),
        )
        if options.model.endswith(".pt2"):
            if options.example:
                raise ExportError("--example needs the module itself, not a .pt2 file")
            export_program(load_program(options.model), options.output, **common)
        else:
            made = load_factory(options.model)
            module, args, dynamic_shapes = (*made, None, None)[:3] if isinstance(made, tuple) else (made, None, None)
            if options.inputs:
                args, dynamic_shapes = parse_inputs(options.inputs)
            if args is None:
                raise ExportError("the factory gives a module alone: say what forward() takes with --inputs")
            args, kwargs = ((), args) if isinstance(args, dict) else (tuple(args), {})
            export(
                module,
                args,
                options.output,
                kwargs=kwargs,
                dynamic_shapes=dynamic_shapes,
                strict=options.strict,
                **common,
            )
            if options.example:
                save_example(module, args, options.output, kwargs)
        objection = check_with_fusec(options.output, options.fusec) if options.check else None
        if objection:
            raise ExportError(f"fusec does not accept the file:\n{objection}")
    except ExportError as error:
        print(f"export_torch.py: {error}", file=sys.stderr)
        return 1
    print(f"wrote {options.output}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
