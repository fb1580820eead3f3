"""A model as fusec compiles it: out.cu through nvcc into a shared library, whose functions are called."""
import ctypes
import json
import os
import subprocess

RUNTIME = "-cudart=shared"  # PyTorch's


def run(command):
    done = subprocess.run(command, text=True, capture_output=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}\n{done.stdout}{done.stderr}")


def nvcc(arch, source, library):
    """For this architecture alone: nvcc -arch=sm_90a would add PTX of compute_90, for which kernels of sm_90a only trap."""
    number = arch.removeprefix("sm_")
    run(["nvcc", "-gencode", f"arch=compute_{number},code=sm_{number}", "-O3", "-std=c++17", "-shared", RUNTIME,
         "-Xcompiler=-fPIC", source, "-o", library])


def compile_graph(fusec, graph, arch, folder, options=()):
    """Makes NAME.so and NAME.manifest.json of a graph NAME in the folder."""
    path = {kind: os.path.join(folder, f"{graph['name']}.{kind}") for kind in ("model.json", "cu", "manifest.json", "so")}
    with open(path["model.json"], "w", encoding="utf-8") as file:
        json.dump(graph, file)
    run([fusec, path["model.json"], f"--arch={arch}", "--no-nvrtc", f"--emit=cu={path['cu']}",
         f"--emit=manifest={path['manifest.json']}", *options])
    nvcc(arch, path["cu"], path["so"])


class CompiledModel:
    """`tensors` of launch and prepare are the addresses of all arguments, then of all results, in the manifest's order."""

    def __init__(self, folder, name):
        with open(os.path.join(folder, f"{name}.manifest.json"), encoding="utf-8") as file:
            self.manifest = json.load(file)
        self.library = ctypes.CDLL(os.path.abspath(os.path.join(folder, f"{name}.so")))
        self.launches = len(self.manifest["launches"])
        self.context = None

    def function(self, name, result=ctypes.c_int):
        function = getattr(self.library, f"{self.manifest['identifier']}_{name}")
        function.restype = result
        return function

    def create(self):
        self.context = ctypes.c_void_p()
        libraries = (ctypes.c_void_p * 2)(None, None)
        self.check(self.function("create")(ctypes.byref(self.context), libraries))

    def check(self, status):
        if status != 0:
            text = self.function("error", ctypes.c_char_p)(self.context) if self.context else None
            raise RuntimeError(f"{self.manifest['identifier']}: CUDA error {status}: {(text or b'').decode()}")

    def arguments(self, shapes, tensors):
        """M_args: each argument's address and extents, then the results' addresses."""
        words = []
        for argument, address in zip(self.manifest["arguments"], tensors):
            words += [address, *shapes[argument["name"]]]
        words += tensors[len(self.manifest["arguments"]):]
        return (ctypes.c_uint64 * len(words))(*words)

    def workspace_bytes(self, arguments):
        return self.function("workspace_bytes", ctypes.c_size_t)(arguments)

    def prepared_bytes(self, arguments):
        return self.function("prepared_bytes", ctypes.c_size_t)(arguments)

    def prepare(self, arguments, prepared, stream):
        pointer = ctypes.c_void_p
        self.check(self.function("prepare")(self.context, arguments, pointer(prepared), pointer(stream)))

    def launcher(self, arguments, prepared, workspace):
        """A function of a stream."""
        launch, pointer = self.function("launch"), ctypes.c_void_p
        values = (self.context, arguments, pointer(prepared), pointer(workspace))
        return lambda stream: self.check(launch(*values, pointer(stream)))

    def destroy(self):
        if self.context:
            self.function("destroy", None)(self.context)
            self.context = None
