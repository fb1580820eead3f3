"""Traces a module and lowers its program: makes it functional and decomposes operators that the format lacks."""

from __future__ import annotations

import contextlib
import functools
import inspect
import logging
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

import torch
from torch._decomp import decomposition_table
from torch.export.graph_signature import InputKind
from torch.fx.proxy import TracerBase
from torch.utils import _pytree as pytree

from ..errors import UsageError
from .caches import check_writable, register_caches, static_caches
from .dimensions import LeafDims, declared_dims
from .errors import TraceError
from . import fourier, fused_layers, index_rewrites, private, resampling  # noqa: F401 (they add to REWRITES)
from .negative_indices import drop_sign_corrections
from .op_handlers import HANDLERS
from .op_rows import ROWS
from .partition import is_view
from .rewrites import REWRITES, Decomposition, batch_norm_inference
from .shared_state import SharedChange, Undo, patch
from .source_lines import models_frames

if TYPE_CHECKING:
    from torch.export.graph_signature import ExportGraphSignature

    from .convert import Problem
    from .dimensions import Ranges

aten = torch.ops.aten
LOG = logging.getLogger(__name__)


class Program(Protocol):
    """The part of a torch.export.ExportedProgram that lowering and conversion read."""

    @property
    def graph(self) -> torch.fx.Graph: ...
    @property
    def graph_signature(self) -> ExportGraphSignature: ...
    @property
    def call_spec(self) -> Any: ...  # in_spec, out_spec: TreeSpec
    @property
    def constants(self) -> Mapping[str, Any]: ...
    @property
    def state_dict(self) -> Mapping[str, Any]: ...
    @property
    def range_constraints(self) -> Ranges: ...
    def run_decompositions(self, table: dict[Any, Decomposition], /) -> Self: ...


AProgram = TypeVar("AProgram", bound=Program)

# Composite operators that core ATen keeps. decompose=True (--decompose) decomposes them.
STILL_COMPOSITE = (
    aten._softmax.default,
    aten._log_softmax.default,
    aten.native_layer_norm.default,
    aten.native_group_norm.default,
    aten._native_batch_norm_legit.no_stats,
    aten.addmm.default,
    aten.gelu.default,
    aten.hardtanh.default,
    aten.leaky_relu.default,
    aten.elu.default,
)

# Their composite kernels in C++ write in place, which torch.compile's graphs must not.
WRITING_IN_PLACE = (aten.silu_backward.default, aten.mish_backward.default)


def _turn_off_fused_kernels() -> Undo:
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    return lambda: torch.backends.mha.set_fastpath_enabled(fast)


def _keep_models_frames() -> Undo:
    if not hasattr(TracerBase, "_filter_traceback_frames"):  # PyTorch's own function: without it, the line of a forward
        return lambda: None
    return patch(TracerBase, "_filter_traceback_frames", lambda tracer, frames: models_frames(frames))


# Fused eager kernels (nn.TransformerEncoderLayer has one) hide operators.
NO_FUSED_KERNELS = SharedChange(_turn_off_fused_kernels)

# Nodes keep the stack of the model's own functions. torch.export keeps frames of methods named forward alone.
LINES_OF_OPERATORS = SharedChange(_keep_models_frames)


@contextlib.contextmanager
def plain_tracing() -> Iterator[None]:
    """Turns off gradients and fused kernels."""
    with NO_FUSED_KERNELS, torch.no_grad():
        yield


@contextlib.contextmanager
def in_eval_mode(module: torch.nn.Module) -> Iterator[None]:
    """Puts a module into eval mode, and gives it and each of its submodules the former mode back.

    Sets the flags alone: a module's own ``train()`` may do more, which could not be taken back.
    """
    before = {m: m.training for m in module.modules()}
    for m in before:
        m.training = False
    try:
        yield
    finally:
        for m, training in before.items():
            m.training = training


def capture(
    module: torch.nn.Module,
    args: Sequence[Any] = (),
    kwargs: dict[str, Any] | None = None,
    dynamic_shapes: Any = None,
    strict: bool = False,
) -> tuple[torch.export.ExportedProgram, list[LeafDims]]:
    """The exported program of the module in eval mode, and the Dims of each input leaf."""
    kwargs = kwargs or {}
    register_caches()
    attributes = [value for m in module.modules() for value in vars(m).values()]
    for cache in static_caches((args, kwargs)):
        check_writable(cache)
    try:
        bound = inspect.signature(module.forward).bind(*args, **kwargs).arguments
    except TypeError as error:
        what = f"the example arguments do not fit {type(module).__name__}.forward"
        raise UsageError(what=what, found=str(error)) from None
    with in_eval_mode(module), plain_tracing(), LINES_OF_OPERATORS, numbers_kept(attributes):
        try:
            program = torch.export.export(module, tuple(args), kwargs, dynamic_shapes=dynamic_shapes, strict=strict)
        except Exception as error:  # the user's own code can raise anything while it is traced
            what, hint = f"torch.export cannot trace {type(module).__name__}", trace_hint(str(error))
            message = f"{what}: {error}" + (f"\nhint: {hint}" if hint else "")
            raise TraceError(message, what=what, found=str(error), hint=hint) from error
    written = {id(t) for t in make_written_constants_buffers(program)}
    for cache in static_caches(attributes):
        if any(id(t) in written for t in pytree.tree_leaves(cache)):
            check_writable(cache)
    return program, declared_dims(bound, dynamic_shapes)


def make_written_constants_buffers(program: torch.export.ExportedProgram) -> list[torch.Tensor]:
    """Makes buffers of tensors that the module keeps as plain attributes and writes: a cache that is no submodule.

    torch.export takes them for constants, and refuses to make a program functional that writes one. Returns them."""
    kept = {s.arg.name: s for s in program.graph_signature.input_specs if s.kind == InputKind.CONSTANT_TENSOR}
    found = [n.name for n in program.graph.find_nodes(op="placeholder") if n.name in kept and is_written(n)]
    for name in found:
        kept[name].kind, kept[name].persistent = InputKind.BUFFER, False
    return [program.constants[str(kept[name].target)] for name in found]


@contextlib.contextmanager
def numbers_kept(values: Sequence[Any]) -> Iterator[None]:
    """Restores one-element tensors (a cache's length) that tracing overwrites."""
    tensors = [t for t in pytree.tree_leaves(values) if type(t) is torch.Tensor and t.numel() == 1 and not t.is_meta]
    before = [t.detach().clone() for t in tensors]
    try:
        yield
    finally:
        for tensor, value in zip(tensors, before):
            if not torch.equal(tensor, value):
                tensor.copy_(value)


def is_written(node: torch.fx.Node) -> bool:
    """Whether an operator writes the node's tensor, or a view of it."""
    return any(writes(user, node) or (is_view(user) and is_written(user)) for user in node.users)


def writes(user: torch.fx.Node, node: torch.fx.Node) -> bool:
    schema = getattr(user.target, "_schema", None)
    arguments = zip(schema.arguments, user.args) if schema is not None else ()
    return any(given is node and a.alias_info is not None and a.alias_info.is_write for a, given in arguments)


def trace_hint(text: str) -> str:
    """A hint about classes of arguments and results that torch.export does not know, or an empty text."""
    if not re.search(r"pytree|[Uu]nsupported.* type|type.* (is )?not supported", text):
        return ""
    return (
        "forward() may take and return tensors, numbers, lists, tuples, dictionaries and classes that are "
        "registered with torch.utils._pytree.register_pytree_node, DynamicCache and StaticCache of transformers included; "
        "for a decoder with a cache of another class, pass use_cache=False (in the configuration or as an argument)"
    )


def lower(
    program: AProgram,
    find_problems: Callable[[AProgram], list[Problem]],
    decompose: bool = False,
    keep: Callable[[str], bool] = lambda target: False,
) -> tuple[AProgram, list[Problem]]:
    """Makes the program functional, then decomposes operators that `find_problems` reports until none can be.

    Returns the program and the problems that remain. find_problems(program) lists the operators (`overload`) that have
    no counterpart. keep(target) is true for an operator that is never decomposed.
    """
    table: dict[Any, Decomposition] = dict(REWRITES)
    if decompose:
        further = _decompositions(STILL_COMPOSITE)
        batch_norm: dict[Any, Decomposition] = {
            aten._native_batch_norm_legit_no_training.default: batch_norm_inference
        }
        table = {**dict(torch.export.default_decompositions().items()), **further, **batch_norm, **table}
    table = {**_decompositions(without_counterpart(program) - set(table)), **table}
    table = {overload: function for overload, function in table.items() if not keep(str(overload))}
    with plain_tracing():
        lowered = decomposed(program, table)
        while True:
            drop_sign_corrections(lowered)
            problems = find_problems(lowered)
            found = _decompositions({p.overload for p in problems} - set(table))
            if not found:
                return lowered, problems
            table.update(found)
            lowered = decomposed(lowered, table)


def without_counterpart(program: Program) -> set[object]:
    """ATen operators of a program that the format lacks: those that can be told before the program is functional.

    Each time the program is decomposed it is traced anew, which takes seconds. complex_operators.py has operators on
    complex tensors."""
    found: set[object] = set()
    for node in program.graph.nodes:
        overload = node.target
        if not isinstance(overload, torch._ops.OpOverload) or overload._schema.is_mutable:
            continue
        values = [n.meta.get("val") for n in (node, *node.all_input_nodes)]
        tensors = [v for value in values for v in (value if isinstance(value, (list, tuple)) else [value])]
        known = overload.namespace != "aten" or str(overload) in HANDLERS or str(overload) in ROWS
        if not known and not any(isinstance(t, torch.Tensor) and t.is_complex() for t in tensors):
            found.add(overload)
    return found


def _decompositions(overloads: Collection[object]) -> dict[Any, Decomposition]:
    """PyTorch's decompositions of those overloads that have one."""
    return {o: d for o, d in ((o, decomposition(o)) for o in overloads) if d is not None}


def decomposed(program: AProgram, table: Mapping[Any, Decomposition]) -> AProgram:
    """The program in functional form, with the operators in `table` decomposed.

    A result of a decomposition may have other strides than the operator's. Where a view of it is then impossible, the
    program becomes functional first, and its views reshapes, which copy what they cannot view.
    """
    try:
        return program.run_decompositions(dict(table))
    except Exception:  # an operator cannot be made functional, or a decomposition fails
        LOG.debug("decomposing failed; once more, in functional form first", exc_info=True)
        try:
            functional = program.run_decompositions({})
            for node in functional.graph.find_nodes(op="call_function", target=aten.view.default):
                node.target = aten.reshape.default
            return functional.run_decompositions(dict(table))
        except Exception as error:
            what = "PyTorch cannot bring the program into functional form"
            raise TraceError(f"{what}: {error}", what=what, found=str(error)) from error


def decomposition(overload: object) -> Decomposition | None:
    """PyTorch's own decomposition of an operator, or None."""
    if not isinstance(overload, torch._ops.OpOverload):
        return None
    composite = torch._C.DispatchKey.CompositeImplicitAutograd
    if composite in overload.py_kernels:
        kernel: Decomposition = overload.py_kernels[composite]
        return kernel
    if overload.has_kernel_for_dispatch_key(composite) and overload not in WRITING_IN_PLACE:
        return functools.partial(private.call_kernel(overload), composite)
    if torch.Tag.nondeterministic_seeded in overload.tags:
        return None  # eager draws: a seed means the same. LSTM has the tag for its dropout, and is decomposed above.
    found: Decomposition | None = decomposition_table.get(overload)
    return found
