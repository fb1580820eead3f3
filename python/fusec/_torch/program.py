"""A module or a saved torch.export program, made functional and lowered until the format has all of its operators."""

import contextlib
import inspect
import operator
import re
import sys

import torch
from torch._decomp import decomposition_table

from .dimensions import declared_dims
from .errors import TraceError
from . import resampling  # noqa: F401 (adds to REWRITES)
from .rewrites import REWRITES, batch_norm_inference

aten = torch.ops.aten


# Core ATen keeps these whole; --decompose does not.
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


@contextlib.contextmanager
def plain_tracing():
    """No gradients, and no fused eager kernel (nn.TransformerEncoderLayer has one) in place of its operators."""
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with torch.no_grad():
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)


def capture(module, args=(), kwargs=None, dynamic_shapes=None, strict=False):
    """(exported program, the Dims of each input leaf). The module is put into eval mode."""
    kwargs = kwargs or {}
    module.eval()
    register_caches()
    bound = inspect.signature(module.forward).bind(*args, **kwargs).arguments
    with plain_tracing():
        try:
            program = torch.export.export(module, tuple(args), kwargs, dynamic_shapes=dynamic_shapes, strict=strict)
        except Exception as error:  # whatever the user's own code raises while it is traced
            text = f"torch.export cannot trace {type(module).__name__}: {error}"
            raise TraceError(text + trace_hint(str(error))) from error
    return program, declared_dims(bound, dynamic_shapes)


def register_caches():
    """Lets torch.export take and return the DynamicCache of Hugging Face's decoders, where their library is in use."""
    if "transformers" not in sys.modules:
        return
    try:
        from transformers.integrations.executorch import register_dynamic_cache_export_support
    except ImportError:  # an older version registers its cache itself
        return
    register_dynamic_cache_export_support()


def trace_hint(text):
    """What to do about arguments and results that torch.export does not know."""
    if not re.search(r"pytree|[Uu]nsupported.* type|type.* (is )?not supported", text):
        return ""
    return (
        "\nhint: forward() may take and return tensors, numbers, lists, tuples, dictionaries and classes that are "
        "registered with torch.utils._pytree.register_pytree_node; for a decoder with a cache of its own class, pass "
        "use_cache=False (in the configuration or as an argument)"
    )


def lower(program, find_problems, decompose=False, keep=lambda target: False):
    """Functional form; then whatever `find_problems` reports is decomposed, as long as there is a way to.

    find_problems(program) -> list of problems, each with the operator (`overload`) that has no counterpart.
    keep(target): whether that operator stays as it is."""
    table = dict(REWRITES)
    if decompose:
        further = {o: d for o, d in ((o, decomposition(o)) for o in STILL_COMPOSITE) if d is not None}
        batch_norm = {aten._native_batch_norm_legit_no_training.default: batch_norm_inference}
        table = {**dict(torch.export.default_decompositions().items()), **further, **batch_norm, **table}
    table = {overload: way for overload, way in table.items() if not keep(str(overload))}
    with plain_tracing():
        lowered = decomposed(program, table)
        while True:
            drop_sign_corrections(lowered)
            problems = find_problems(lowered)
            wanted = {p.overload for p in problems} - set(table)
            found = {o: d for o, d in ((o, decomposition(o)) for o in wanted) if d is not None}
            if not found:
                return lowered, problems
            table.update(found)
            lowered = decomposed(lowered, table)


def decomposed(program, table):
    try:
        return program.run_decompositions(dict(table))
    except Exception as error:  # an operator that PyTorch cannot make functional, a decomposition of its that fails
        raise TraceError(f"PyTorch cannot bring the program into functional form: {error}") from error


def decomposition(overload):
    """PyTorch's own way to say an operator in simpler ones, or None."""
    if not isinstance(overload, torch._ops.OpOverload):
        return None
    composite = torch._C.DispatchKey.CompositeImplicitAutograd
    if composite in overload.py_kernels:
        return overload.py_kernels[composite]
    if overload.has_kernel_for_dispatch_key(composite):
        return lambda *args, **kwargs: overload._op_dk(composite, *args, **kwargs)
    return decomposition_table.get(overload)


def drop_sign_corrections(program):
    """where(i < 0, i + size, i) -> i (see rewrites.py) for what cannot be negative: ranges, their views, constants."""
    constants = {}
    for spec in program.graph_signature.input_specs:
        tensor = program.constants.get(spec.target, program.state_dict.get(spec.target)) if spec.target else None
        if isinstance(tensor, torch.Tensor) and not (
            tensor.is_floating_point() or tensor.is_complex() or tensor.is_meta
        ):
            constants[spec.arg.name] = tensor
    mutated = set(program.graph_signature.buffers_to_mutate.values())
    buffers = program.graph_signature.inputs_to_buffers
    never_negative = {}
    for node in program.graph.nodes:
        if node.op == "placeholder":
            tensor = constants.get(node.name) if buffers.get(node.name) not in mutated else None
            never_negative[node] = tensor is not None and (tensor.numel() == 0 or bool((tensor >= 0).all()))
        elif node.op == "call_function":
            never_negative[node] = _never_negative(node, never_negative)
            index = _corrected_index(node)
            if index is not None and never_negative.get(index):
                node.replace_all_uses_with(index)


KEEPS_SIGN = {
    aten.view.default,
    aten.reshape.default,
    aten.unsqueeze.default,
    aten.expand.default,
    aten.permute.default,
    aten.transpose.int,
    aten.t.default,
    aten.clone.default,
    aten.slice.Tensor,
    aten.select.int,
    aten._to_copy.default,
    aten.squeeze.dim,
    aten.flatten.using_ints,
    aten.add.Tensor,
    aten.mul.Tensor,
    aten.index_select.default,
    aten.cat.default,
    aten.stack.default,
    aten.repeat.default,
    aten.lift_fresh_copy.default,
    aten.detach.default,
    aten._unsafe_view.default,
    aten.maximum.default,
    aten.minimum.default,
    aten.alias.default,
}
STARTS_AT_ZERO = {aten.argmax.default, aten.argmin.default, aten.abs.default, aten.bitwise_and.Tensor}


def _never_negative(node, known):
    if node.target in (aten.arange.default, aten.arange.start, aten.arange.start_step):
        start = 0 if node.target is aten.arange.default else node.args[0]
        step = node.args[2] if len(node.args) > 2 else 1
        return isinstance(start, int) and start >= 0 and isinstance(step, int) and step > 0
    if node.target is aten.clamp.default:
        low = node.args[1] if len(node.args) > 1 else None
        return isinstance(low, int) and low >= 0
    if node.target in STARTS_AT_ZERO:
        return node.target is not aten.bitwise_and.Tensor
    if node.target is operator.getitem:
        return (
            node.args[0].target in (aten.topk.default, aten.sort.default, aten.sort.stable, aten.max.dim)
            and node.args[1] == 1
        )
    if node.target in KEEPS_SIGN:
        tensors = node.all_input_nodes
        numbers = [
            a
            for a in node.args[1:2]
            if isinstance(a, (int, float)) and node.target in (aten.add.Tensor, aten.mul.Tensor)
        ]
        return all(known.get(t, isinstance(t.meta.get("val"), torch.SymInt)) for t in tensors) and all(
            n >= 0 for n in numbers
        )
    return False


def _corrected_index(node):
    """i, when node is where(i < 0, i + size, i)."""
    if node.target is not aten.where.self:
        return None
    below, moved, index = node.args
    if (
        isinstance(below, torch.fx.Node)
        and below.target is aten.lt.Scalar
        and below.args == (index, 0)
        and isinstance(moved, torch.fx.Node)
        and moved.target is aten.add.Tensor
        and moved.args[0] is index
    ):
        return index
    return None
