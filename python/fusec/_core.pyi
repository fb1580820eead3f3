"""The fusec library. The package fusec is what users import."""

from collections.abc import Callable, Mapping, Sequence

from typing_extensions import CapsuleType


class TensorInfo:
    """
    A tensor's dtype (an ml_dtypes name) and shape (numbers and expressions).
    """

    def __init__(self, dtype: str, shape: Sequence[int | str]) -> None: ...

    @property
    def dtype(self) -> str: ...

    @property
    def shape(self) -> list[int | str]: ...

    def __repr__(self) -> str: ...

class Registry:
    """The operators that models may use. A value: `with_op` gives a new one."""

    def __init__(self) -> None: ...

    def with_op(self, name: str, operands: Sequence[str], expression: str = '', pattern: str = 'opaque', launcher: str = '', infer: Callable[[Sequence[TensorInfo]], TensorInfo] | None = None) -> Registry: ...

    def op_names(self) -> list[str]: ...

    def __repr__(self) -> str: ...

class ModelTensor:
    """An input, a constant or an output of a model."""

    @property
    def name(self) -> str: ...

    @property
    def dtype(self) -> str: ...

    @property
    def shape(self) -> list[int | str]: ...

    @property
    def is_known(self) -> bool:
        """A constant whose elements the model has."""

    def __repr__(self) -> str: ...

class ResourceLimits:
    def __init__(self) -> None: ...

    @property
    def timeout(self) -> float: ...

    @timeout.setter
    def timeout(self, arg: float, /) -> None: ...

    @property
    def max_memory(self) -> int: ...

    @max_memory.setter
    def max_memory(self, arg: int, /) -> None: ...

    @property
    def max_file_size(self) -> int: ...

    @max_file_size.setter
    def max_file_size(self, arg: int, /) -> None: ...

    @property
    def limit(self) -> dict[str, int]: ...

    @limit.setter
    def limit(self, arg: Mapping[str, int], /) -> None: ...

class Model:
    """A graph of tensor operators. Immutable."""

    @staticmethod
    def read(path: str, registry: Registry = ..., resources: ResourceLimits = ...) -> Model:
        """Reads a model file; "-" is standard input. Raises InputError."""

    @staticmethod
    def parse(text: str, directory: str = '.', registry: Registry = ..., resources: ResourceLimits = ...) -> Model:
        """
        Reads a model's JSON; weight files are looked for in `directory`. Raises InputError.
        """

    @property
    def name(self) -> str: ...

    @property
    def directory(self) -> str:
        """Where weight files are looked for."""

    @property
    def node_names(self) -> list[str]:
        """In topological order."""

    @property
    def inputs(self) -> list[ModelTensor]:
        """In the order of a call."""

    @property
    def constants(self) -> list[ModelTensor]: ...

    @property
    def outputs(self) -> list[ModelTensor]: ...

    def constant_bytes(self, name: str) -> bytes:
        """The elements of a constant that is_known, as they lie in memory."""

    def to_json(self) -> str: ...

    def to_text(self) -> str: ...

    def __repr__(self) -> str: ...

class Value:
    """A value of a model under construction."""

    @property
    def name(self) -> str: ...

    def __repr__(self) -> str: ...

class ModelBuilder:
    """Builds a model call by call."""

    def __init__(self, name: str, registry: Registry = ...) -> None: ...

    def symbol(self, name: str, min: int = 1, max: int = 2147483647, multiple_of: int = 1, hint: int | None = None) -> None:
        """
        Declares a symbolic dimension with its bounds; `hint` is the value that costs take.
        """

    def input(self, name: str, dtype: str, shape: Sequence[int | str]) -> Value: ...

    def constant(self, name: str, dtype: str, shape: Sequence[int | str], data: Sequence[float] | None = None) -> Value:
        """
        A tensor known before run time. Without `data` (row-major elements) it is given by name at a call.
        """

    def op(self, op: str, *operands: Value | bool | int | float | None, name: str = '', **attributes: object) -> Value:
        """A node with one result. Attributes have PyTorch's names."""

    def op_several(self, op: str, count: int, *operands: Value | bool | int | float | None, name: str = '', **attributes: object) -> list[Value]:
        """A node with `count` results (split, topk)."""

    def output(self, value: Value) -> None: ...

    def build(self, resources: ResourceLimits = ...) -> Model:
        """
        Checks the whole model and infers its types. Raises InputError with the JSON pointer of what is wrong.
        """

    def __repr__(self) -> str: ...

class MatchedValue:
    """A value that a pattern found."""

    @property
    def name(self) -> str:
        """In the pattern."""

    @property
    def value(self) -> str:
        """In the model; for a number, its text."""

    @property
    def type(self) -> TensorInfo: ...

    @property
    def producer(self) -> str: ...

    @property
    def users(self) -> list[str]: ...

    @property
    def is_output(self) -> bool: ...

    def __repr__(self) -> str: ...

class MatchedPattern:
    """What a pattern found."""

    @property
    def pattern(self) -> str: ...

    @property
    def root(self) -> str: ...

    @property
    def nodes(self) -> list[str]: ...

    @property
    def values(self) -> list[MatchedValue]: ...

    def __repr__(self) -> str: ...

class Pattern:
    """
    Fusion patterns as a pattern file has them, and what their text cannot say.
    """

    def __init__(self, text: str, check: Callable[[MatchedPattern], str] | None = None, attributes: Callable[[MatchedPattern], Sequence[tuple[str, str]]] | None = None) -> None:
        """
        `check` says "" for yes, else why not; `attributes` are those of the group.
        """

    @property
    def text(self) -> str: ...

    def __repr__(self) -> str: ...

class Progress:
    """How far a compilation is."""

    @property
    def stage(self) -> str: ...

    @property
    def done(self) -> int:
        """Pieces of source that NVRTC compiled."""

    @property
    def total(self) -> int:
        """Pieces in all; 0 in other stages."""

    def __repr__(self) -> str: ...

class Options:
    def __init__(self) -> None: ...

    @property
    def strategy(self) -> str: ...

    @strategy.setter
    def strategy(self, arg: str, /) -> None: ...

    @property
    def arch(self) -> str: ...

    @arch.setter
    def arch(self, arg: str, /) -> None: ...

    @property
    def target(self) -> str: ...

    @target.setter
    def target(self, arg: str, /) -> None: ...

    @property
    def symbol(self) -> dict[str, int]: ...

    @symbol.setter
    def symbol(self, arg: Mapping[str, int], /) -> None: ...

    @property
    def max_fused_ops(self) -> int: ...

    @max_fused_ops.setter
    def max_fused_ops(self, arg: int, /) -> None: ...

    @property
    def max_args(self) -> int: ...

    @max_args.setter
    def max_args(self, arg: int, /) -> None: ...

    @property
    def no_fuse(self) -> list[str]: ...

    @no_fuse.setter
    def no_fuse(self, arg: Sequence[str], /) -> None: ...

    @property
    def no_fuse_node(self) -> list[str]: ...

    @no_fuse_node.setter
    def no_fuse_node(self, arg: Sequence[str], /) -> None: ...

    @property
    def patterns(self) -> list[Pattern]: ...

    @patterns.setter
    def patterns(self, arg: Sequence[Pattern], /) -> None: ...

    @property
    def pattern_files(self) -> list[str]: ...

    @pattern_files.setter
    def pattern_files(self, arg: Sequence[str], /) -> None: ...

    @property
    def disable_pattern(self) -> list[str]: ...

    @disable_pattern.setter
    def disable_pattern(self, arg: Sequence[str], /) -> None: ...

    @property
    def disable_pass(self) -> list[str]: ...

    @disable_pass.setter
    def disable_pass(self, arg: Sequence[str], /) -> None: ...

    @property
    def gemm(self) -> str: ...

    @gemm.setter
    def gemm(self, arg: str, /) -> None: ...

    @property
    def plan(self) -> str: ...

    @plan.setter
    def plan(self, arg: str, /) -> None: ...

    @property
    def plan_deadline(self) -> float: ...

    @plan_deadline.setter
    def plan_deadline(self, arg: float, /) -> None: ...

    @property
    def tuning_db(self) -> str: ...

    @tuning_db.setter
    def tuning_db(self, arg: str, /) -> None: ...

    @property
    def round_intermediates(self) -> bool: ...

    @round_intermediates.setter
    def round_intermediates(self, arg: bool, /) -> None: ...

    @property
    def precise_math(self) -> bool: ...

    @precise_math.setter
    def precise_math(self, arg: bool, /) -> None: ...

    @property
    def allow_tf32(self) -> bool: ...

    @allow_tf32.setter
    def allow_tf32(self, arg: bool, /) -> None: ...

    @property
    def allow_atomics(self) -> bool: ...

    @allow_atomics.setter
    def allow_atomics(self, arg: bool, /) -> None: ...

    @property
    def ptx(self) -> bool: ...

    @ptx.setter
    def ptx(self, arg: bool, /) -> None: ...

    @property
    def jobs(self) -> int: ...

    @jobs.setter
    def jobs(self, arg: int, /) -> None: ...

    @property
    def cache_dir(self) -> str: ...

    @cache_dir.setter
    def cache_dir(self, arg: str, /) -> None: ...

    @property
    def cache_size(self) -> int: ...

    @cache_size.setter
    def cache_size(self, arg: int, /) -> None: ...

    @property
    def nvrtc_library(self) -> str: ...

    @nvrtc_library.setter
    def nvrtc_library(self, arg: str, /) -> None: ...

    @property
    def progress(self) -> Callable[[Progress], None]: ...

    @progress.setter
    def progress(self, progress: Callable[[Progress], None] | None) -> None: ...

    @property
    def resources(self) -> ResourceLimits: ...

    @resources.setter
    def resources(self, arg: ResourceLimits, /) -> None: ...

class KernelImage:
    """Compiled kernels of one model."""

    def __init__(self, ptx: str, cubin: bytes) -> None: ...

    @property
    def ptx(self) -> str: ...

    @property
    def cubin(self) -> bytes: ...

    def __repr__(self) -> str: ...

class Group:
    """Nodes that become one kernel."""

    @property
    def name(self) -> str: ...

    @property
    def nodes(self) -> list[str]: ...

    @property
    def pattern(self) -> str:
        """Its pattern kind."""

    @property
    def claimed_by(self) -> str:
        """The fusion pattern that claimed it; "" for none."""

    @property
    def attributes(self) -> list[tuple[str, str]]:
        """That the fusion pattern gave it."""

    def __repr__(self) -> str: ...

class Kernel:
    """A __global__ function."""

    @property
    def name(self) -> str: ...

    @property
    def schedule(self) -> str: ...

    @property
    def source(self) -> str: ...

    def __repr__(self) -> str: ...

class Compilation:
    @property
    def source(self) -> str: ...

    @property
    def manifest(self) -> str: ...

    @property
    def partition(self) -> str: ...

    @property
    def plan(self) -> str: ...

    @property
    def groups(self) -> list[Group]: ...

    @property
    def kernels(self) -> list[Kernel]: ...

    @property
    def diagnostics(self) -> list[str]: ...

    @property
    def images(self) -> list[KernelImage]: ...

    def whole_image(self) -> KernelImage: ...

    def ledger(self) -> str: ...

    def report(self) -> str: ...

    def ir(self) -> str: ...

    def dot(self) -> str: ...

    def svg(self) -> str: ...

    def html(self) -> str: ...

    def summary(self) -> str: ...

    def explain(self, nodes: Sequence[str], json: bool = False) -> str: ...

    def require_one_kernel(self, nodes: Sequence[str]) -> None: ...

    def stage_seconds(self) -> list[tuple[str, float]]: ...

def compile(model: Model, options: Options) -> Compilation: ...

class PassInfo:
    """A stage of a compilation."""

    @property
    def name(self) -> str: ...

    @property
    def summary(self) -> str: ...

    @property
    def rewrites(self) -> bool:
        """From graph to graph: run_pass runs it."""

    def __repr__(self) -> str: ...

class PatternInfo:
    """A fusion pattern."""

    @property
    def name(self) -> str: ...

    @property
    def summary(self) -> str: ...

    @property
    def match(self) -> str: ...

    @property
    def becomes(self) -> str: ...

    @property
    def priority(self) -> int: ...

    def __repr__(self) -> str: ...

def passes() -> list[PassInfo]: ...

def patterns(options: Options) -> list[PatternInfo]: ...

def run_pass(model: Model, name: str, options: Options) -> Model: ...

def annotate(model: Model, strategy: str = 'full') -> list[str]: ...

def partition(model: Model, options: Options) -> list[Group]: ...

def version() -> str: ...

class TensorDeclaration:
    """What a call takes or gives."""

    @property
    def name(self) -> str: ...

    @property
    def dtype(self) -> str: ...

    @property
    def shape(self) -> list[int | str]: ...

    @property
    def is_constant(self) -> bool: ...

    @property
    def alias_of(self) -> str: ...

    def __repr__(self) -> str: ...

class Collective:
    """What the devices of a group do together in one step of a call."""

    @property
    def op(self) -> str: ...

    @property
    def group(self) -> str: ...

    @property
    def reduce_op(self) -> str: ...

    @property
    def dtype(self) -> str: ...

    @property
    def source(self) -> int: ...

    @property
    def source_elements(self) -> int: ...

    @property
    def target(self) -> int: ...

    @property
    def target_elements(self) -> int: ...

class Executable:
    def __init__(self, manifest: str, images: Sequence[KernelImage]) -> None: ...

    @property
    def manifest(self) -> str: ...

    @property
    def arch(self) -> str: ...

    @property
    def arguments(self) -> list[TensorDeclaration]: ...

    @property
    def results(self) -> list[TensorDeclaration]: ...

    def result_shapes(self, arguments: Sequence[tuple[int, str, Sequence[int]]]) -> list[list[int]]: ...

    def run_on_emulator(self, arguments: Sequence[tuple[int, str, Sequence[int]]], results: Sequence[tuple[int, str, Sequence[int]]], threads: int = 0, communicate: Callable[[Collective, int], None] | None = None) -> None: ...

class DeviceMemory:
    def __init__(self, device: int, bytes: int) -> None: ...

    @property
    def address(self) -> int: ...

    def copy_from_host(self, source: int, bytes: int) -> None: ...

    def copy_to_host(self, target: int, bytes: int) -> None: ...

class CapturedLaunch:
    def launch(self, stream: int) -> None: ...

class DeviceModule:
    def __init__(self, module: Executable, device: int) -> None: ...

    def launch(self, arguments: Sequence[tuple[int, str, Sequence[int]]], results: Sequence[tuple[int, str, Sequence[int]]], stream: int, communicate: Callable[[Collective, int], None] | None = None) -> None: ...

    def constants_changed(self) -> None: ...

    def capture(self, arguments: Sequence[tuple[int, str, Sequence[int]]], results: Sequence[tuple[int, str, Sequence[int]]], communicate: Callable[[Collective, int], None] | None = None) -> CapturedLaunch: ...

DEVICE_ALIGNMENT: int = 16

def run_reference(model: Model, arguments: Sequence[tuple[str, int, str, Sequence[int]]], results: Sequence[tuple[str, int, str, Sequence[int]]]) -> None: ...

def has_device(device: int = 0) -> bool: ...

def synchronize(device: int, stream: int) -> None: ...

class Borrowed:
    """A tensor of another package, for as long as this object lives."""

    def __init__(self, capsule: CapsuleType) -> None: ...

    @property
    def address(self) -> int: ...

    @property
    def dtype(self) -> str: ...

    @property
    def shape(self) -> list[int]: ...

    @property
    def is_dense(self) -> bool: ...

    @property
    def is_read_only(self) -> bool: ...

    @property
    def device_type(self) -> int: ...

    @property
    def device_id(self) -> int: ...

class Finding:
    """One thing that this machine has or lacks."""

    @property
    def subject(self) -> str: ...

    @property
    def state(self) -> str: ...

    @property
    def found(self) -> str: ...

    @property
    def advice(self) -> str: ...

    def __repr__(self) -> str: ...

def examine(options: Options) -> list[Finding]: ...

def findings_text(findings: Sequence[Finding]) -> str: ...

def findings_json(findings: Sequence[Finding]) -> str: ...

def can_compile(findings: Sequence[Finding]) -> bool: ...

def users_cache_directory() -> str: ...
