"""torch.compile(model, backend="fusec"): AOTAutograd's graphs, region by region; the rest stays with eager."""

from __future__ import annotations

import dataclasses
import functools
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from functorch.compile import min_cut_rematerialization_partition
from torch._dynamo.backends.common import aot_autograd

from .._compile import patterns
from ..errors import InputError
from . import private
from .aten_program import AtenProgram
from .convert import Converter
from .cuda_graphs import split_options
from .errors import TraceError
from .output_views import reattach_output_views, without_last_views
from .partition import PREFIX, called, is_size, is_view, split_into_regions, tensors_of, why_eager
from .program import lower
from .region import Region, add_sizes
from .source_lines import source_line

Compiled = Callable[..., Any]


@dataclasses.dataclass(frozen=True)
class EagerNode:
    """A node that stays with eager: the operator, the line of the module that calls it, and why."""

    operator: str
    source: str
    reason: str


@dataclasses.dataclass
class GraphReport:
    """What became of one graph: the regions that were compiled, and the nodes that stay with eager."""

    regions: list[Region] = dataclasses.field(default_factory=list)
    eager: list[EagerNode] = dataclasses.field(default_factory=list)

    @property
    def launches(self) -> int:
        return sum(int(g["launches"]) for r in self.regions for g in r.module.partition["groups"])

    @property
    def operators(self) -> int:
        """ATen operators in the regions, views apart."""
        return sum(r.operators for r in self.regions)


_recording = threading.local()


@contextmanager
def recorded() -> Iterator[list[GraphReport]]:
    """The graphs that this thread compiles meanwhile."""
    before = getattr(_recording, "graphs", None)
    graphs: list[GraphReport] = []
    _recording.graphs = graphs
    try:
        yield graphs
    finally:
        _recording.graphs = before


def backend(
    graph: torch.fx.GraphModule, example_inputs: Sequence[Any], options: Mapping[str, Any] | None = None
) -> Compiled:
    """The backend that ``torch.compile(model, backend="fusec", options={...})`` finds by the package's entry point.

    ``options``: those of :func:`fusec.compile` (``strategy``, ``gemm``, ``precise_math``, ``arch``, ...), and
    ``cuda_graphs``: if true, regions on a GPU are launched as CUDA graphs from their second call on. Raises what
    :func:`fusec.compile` raises for options and the platform, in torch._dynamo.exc.BackendCompilerFailed.
    """
    wanted = dict(options or {})
    patterns(**split_options(wanted)[0])  # raises for a wrong option or pattern file, also where there is no region

    def compiler(module: torch.fx.GraphModule, inputs: Sequence[Any]) -> Compiled:
        with private.unset_fake_temporarily():
            compiled, report = compile_graph(module, wanted)
        if getattr(_recording, "graphs", None) is not None:
            _recording.graphs.append(report)
        compiled._boxed_call = True  # type: ignore[attr-defined]
        return compiled

    made: Compiled = aot_autograd(
        fw_compiler=compiler,
        bw_compiler=compiler,
        inference_compiler=compiler,
        partition_fn=min_cut_rematerialization_partition,
        keep_inference_input_mutations=True,
    )(graph, example_inputs)
    return made


def compile_graph(module: torch.fx.GraphModule, options: Mapping[str, Any]) -> tuple[Compiled, GraphReport]:
    """A graph of ATen operators as a function of a list, which it empties, that calls compiled regions."""
    without_views, returned = without_last_views(module)
    try:
        program, problems = lower(AtenProgram(without_views), lambda p: Converter(p, None, "graph").run().problems)
    except TraceError as error:
        return taking_a_list(module), GraphReport(eager=[eager_node(n, str(error)) for n in operators(module.graph)])
    refused = {p.node: p.reason for p in problems}
    reattach_output_views(module, program.module, returned)
    outer = split_into_regions(program.module, refused)
    report = GraphReport()
    for call in outer.graph.find_nodes(op="call_module"):
        name = str(call.target)
        if not name.startswith(PREFIX):
            continue
        graph = outer.get_submodule(name)
        assert isinstance(graph, torch.fx.GraphModule)
        try:
            region, sizes = compiled_region(outer.graph, call, graph, name, options)
        except InputError as error:
            if options and compiles(outer.graph, call, graph, name):
                raise  # the options are to blame
            report.eager += [eager_node(n, str(error)) for n in operators(graph.graph)]
            continue
        report.regions.append(region)
        outer.set_submodule(name, region)
        call.args = (*call.args, *sizes)
    report.eager += [eager_node(n, why_eager(n, refused)) for n in operators(outer.graph)]
    return taking_a_list(outer), report


def taking_a_list(module: torch.fx.GraphModule) -> Compiled:
    """The module as a function of a list of its arguments, which frees each argument after its last use."""
    graph = torch.fx.Graph()
    arguments = graph.placeholder("arguments")
    taken = [graph.call_method("pop", (arguments, 0)) for _ in module.graph.find_nodes(op="placeholder")]
    graph.output(graph.graph_copy(module.graph, dict(zip(module.graph.find_nodes(op="placeholder"), taken))))
    forward = torch.fx.GraphModule(module, graph).forward
    return lambda arguments: forward(arguments)


def compiled_region(
    outer: torch.fx.Graph, call: torch.fx.Node, module: torch.fx.GraphModule, name: str, options: Mapping[str, Any]
) -> tuple[Region, list[torch.fx.Node]]:
    """The region, and the sizes that it takes after the arguments of `call`. `module` stays as it is."""
    graph = torch.fx.Graph()
    graph.output(graph.graph_copy(module.graph, {}))
    sizes = add_sizes(graph, outer, call)
    region = Region(module, torch.fx.GraphModule(module, graph), name, options)
    if not any(t.is_cuda for n in call.all_input_nodes for t in tensors_of(n)):
        warn_of_the_emulator()
    return region, sizes


def compiles(outer: torch.fx.Graph, call: torch.fx.Node, module: torch.fx.GraphModule, name: str) -> bool:
    """Whether the region compiles without options."""
    try:
        compiled_region(outer, call, module, name, {"no_nvrtc": True})
    except InputError:
        return False
    return True


@functools.cache
def warn_of_the_emulator() -> None:
    """Once a process."""
    warnings.warn("fusec: CPU tensors: the kernels run on fusec's PTX emulator, which is slow", stacklevel=2)


def operators(graph: torch.fx.Graph) -> list[torch.fx.Node]:
    """Nodes for which eager runs a kernel."""
    kinds = (torch._ops.OpOverload, torch._ops.HigherOrderOperator)
    return [n for n in graph.nodes if isinstance(n.target, kinds) and not is_view(n) and not is_size(n)]


def eager_node(node: torch.fx.Node, reason: str | None) -> EagerNode:
    return EagerNode(str(called(node)), source_line(node), reason or "")
