"""Measures NVRTC's CPU time for a model's kernels relative to a yardstick (for tests/kernels). CPU time grows when other
work shares cores and caches, so limits scale with the yardstick: the kernel of a float32 product, compiled before and
after, the lesser time counts, relative to 120 ms on a quiet machine. Of several attempts, the one with the smallest
ratio to its limit counts."""
import ctypes
import json
import os
import pathlib
import re
import subprocess

PROMISED_MS = 400
YARDSTICK_MS = 120
ATTEMPTS = 6
YARDSTICK = {
    "fusec": 1, "name": "yardstick", "outputs": ["y"],
    "inputs": [{"name": name, "dtype": "float32", "shape": shape}
               for name, shape in (("x", [1024, 1024]), ("w", [1024, 1024]), ("b", [1024]))],
    "nodes": [{"name": "p", "op": "linear", "inputs": ["x", "w", "b"]}, {"name": "y", "op": "gelu", "inputs": ["p"]}]}


def find_nvrtc(fusec):
    """The library, searched as the program does (codegen/nvrtc/nvrtc_search_paths.h)."""
    folders = [pathlib.Path(os.path.realpath(fusec)).parents[1] / "lib" / "fusec"]
    for cuda in (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"):
        folders += [pathlib.Path(cuda) / "lib64", pathlib.Path(cuda) / "lib"] if cuda else []
    names = ("libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so")
    candidates = [os.environ["FUSEC_NVRTC"]] if os.environ.get("FUSEC_NVRTC") else []
    candidates += [str(folder / name) for folder in folders for name in names if (folder / name).exists()] + list(names)
    for path in candidates:
        try:
            ctypes.CDLL(path)
            return path
        except OSError:
            pass
    return None


def compile_ms(library, source, target):
    """CPU time of a process that loads NVRTC and compiles this source once, as the program does when the cubin is only
    a proof."""
    process = os.fork()
    if process == 0:
        for builtins in pathlib.Path(library).parent.glob("libnvrtc-builtins.so.*"):
            ctypes.CDLL(str(builtins))  # NVRTC loads it by its bare name
        nvrtc, program = ctypes.CDLL(library), ctypes.c_void_p()
        options = [f"--gpu-architecture={target}".encode(), b"--std=c++17", b"--generate-line-info",
                   b"--ptxas-options=-O1"]
        nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"out.cu", 0, None, None)
        os._exit(nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options)))
    _, status, used = os.wait4(process, 0)
    if status != 0:
        raise RuntimeError(f"NVRTC refuses a kernel for {target}:\n{source}")
    return 1e3 * (used.ru_utime + used.ru_stime)


def kernels_of(fusec, path, target, scratch, options):
    """Sources of the model's kernels, each with the whole prelude."""
    emitted = os.path.join(scratch, "nvrtc_time.cu")
    subprocess.run([fusec, path, f"--arch={target}", *options, "--no-nvrtc", "-o", emitted], check=True, capture_output=True)
    with open(emitted, encoding="utf-8") as f:
        device = f.read().split("#ifndef __CUDACC_RTC__")[0]
    prelude, *kernels = re.split(r"^// ---- \S+ -+\n", device, flags=re.MULTILINE)
    return [prelude + kernel for kernel in kernels if "__global__" in kernel]


def nvrtc_ms(library, fusec, path, target, scratch, options=()):
    """A function that compiles all kernels again and returns the time of the slowest."""
    kernels = kernels_of(fusec, path, target, scratch, options)
    return lambda: max(compile_ms(library, kernel, target) for kernel in kernels)


class NvrtcTime:
    """Measures models and the yardstick; raises LookupError if NVRTC is missing."""

    def __init__(self, fusec, scratch):
        self.library, self.fusec, self.scratch = find_nvrtc(fusec), fusec, scratch
        if self.library is None:
            raise LookupError("NVRTC is missing")
        path = os.path.join(scratch, "yardstick.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump(YARDSTICK, f)
        self.yardstick = nvrtc_ms(self.library, fusec, path, "sm_80", scratch)

    def slowest(self, path, target, options=()):
        """The time of the model's slowest kernel in milliseconds, and its limit, of the attempt that counts."""
        once = nvrtc_ms(self.library, self.fusec, path, target, self.scratch, options)
        before, least = self.yardstick(), (float("inf"), 0, 0)
        for _ in range(ATTEMPTS):
            took, after = once(), self.yardstick()
            limit = PROMISED_MS * max(1.0, min(before, after) / YARDSTICK_MS)
            least, before = min(least, (took / limit, took, limit)), after
            if least[0] <= 1:
                break
        return least[1:]
