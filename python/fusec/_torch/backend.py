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
from functorch.compile import make_boxed_func, min_cut_rematerialization_partition
from torch._dynamo.backends.common import aot_autograd

from .._compile import patterns
from ..errors import InputError
from . import private
from .aten_program import AtenProgram
from .convert import Converter
from .cuda_graphs import split_options
from .errors import TraceError
from .output_views import reattach_output_views, without_last_views
from .partition import PREFIX, is_size, is_view, split_into_regions, tensors_of, why_eager
from .program import lower
from .region import Region, add_sizes
from .source_lines import source_line

Compiled = Callable[..., Any]
WRITTEN_EARLY = "it writes an input whose old value an operator outside the region still reads"


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
        return sum(not is_view(n) for r in self.regions for n in r.nodes)


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
    patterns(**split_options(wanted)[0])  # raises for a wrong option or pattern file, which would else leave each region to eager

    def compiler(module: torch.fx.GraphModule, inputs: Sequence[Any]) -> Compiled:
        with private.unset_fake_temporarily():
            compiled, report = compile_graph(module, wanted)
        if getattr(_recording, "graphs", None) is not None:
            _recording.graphs.append(report)
        boxed: Compiled = make_boxed_func(compiled)
        return boxed

    made: Compiled = aot_autograd(
        fw_compiler=compiler,
        bw_compiler=compiler,
        inference_compiler=compiler,
        partition_fn=min_cut_rematerialization_partition,
        keep_inference_input_mutations=True,
    )(graph, example_inputs)
    return made


def compile_graph(module: torch.fx.GraphModule, options: Mapping[str, Any]) -> tuple[Compiled, GraphReport]:
    """A graph of ATen operators as one that calls compiled regions."""
    without_views, returned = without_last_views(module)
    try:
        program, problems = lower(AtenProgram(without_views), lambda p: Converter(p, None, "graph").run().problems)
    except TraceError as error:
        eager = [EagerNode(str(n.target), source_line(n), str(error)) for n in operators(module.graph)]
        return module.forward, GraphReport(eager=eager)
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
            report.eager += [EagerNode(str(n.target), source_line(n), str(error)) for n in operators(graph.graph)]
            continue
        report.regions.append(region)
        outer.set_submodule(name, region)
        call.args = (*call.args, *sizes)
    report.eager += [
        EagerNode(str(n.target), source_line(n), why_eager(n, refused) or WRITTEN_EARLY)
        for n in operators(outer.graph)
    ]
    outer.recompile()
    return outer.forward, report


def compiled_region(
    outer: torch.fx.Graph, call: torch.fx.Node, module: torch.fx.GraphModule, name: str, options: Mapping[str, Any]
) -> tuple[Region, list[torch.fx.Node]]:
    """The region, and the sizes that it takes after the arguments of `call`. `module` stays as it is."""
    graph = torch.fx.Graph()
    graph.output(graph.graph_copy(module.graph, {}))
    sizes = add_sizes(graph, outer, call)
    region = Region(torch.fx.GraphModule(module, graph), name, options)
    if not any(t.is_cuda for n in call.all_input_nodes for t in tensors_of(n)):
        warn_of_the_emulator()
    return region, sizes


@functools.cache
def warn_of_the_emulator() -> None:
    """Once a process."""
    warnings.warn("fusec: CPU tensors: the kernels run on fusec's PTX emulator, which is slow", stacklevel=2)


def operators(graph: torch.fx.Graph) -> list[torch.fx.Node]:
    """Nodes for which eager runs a kernel."""
    return [
        n
        for n in graph.nodes
        if n.op == "call_function" and isinstance(n.target, torch._ops.OpOverload) and not is_view(n) and not is_size(n)
    ]
