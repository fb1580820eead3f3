"""What bench/compare_triton*.py share: tensors in files, peers' PTX on the emulator, and what was counted there.

Ends the program with 77 where Triton or NumPy is missing."""
import json
import os
import re
import struct
import subprocess
import sys

try:
    import numpy
    import triton
    import triton.language as tl
    from triton.backends.compiler import GPUTarget
    from triton.backends.nvidia.compiler import get_ptxas
    from triton.compiler import ASTSource
except ImportError as missing:
    print(f"{os.path.basename(sys.argv[0])}: {missing}")
    sys.exit(77)

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LETTERS = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16", "float8_e4m3fn": "fp8e4nv"}  # Triton's names
FILE_NAMES = {"float32": "F32", "bfloat16": "BF16", "float16": "F16", "float8_e4m3fn": "F8_E4M3"}
SHARED_BYTES = {80: 163 * 1024, 90: 227 * 1024}


def target_name(arch):
    return "sm_90a" if arch == 90 else f"sm_{arch}"


def e4m3(values):
    """The nearest float8_e4m3fn, as bytes, and what they hold: looked for among all of them."""
    codes = numpy.arange(127, dtype=numpy.uint8)
    fraction, exponent = codes & 7, (codes >> 3).astype(numpy.int64)
    held = numpy.where(exponent == 0, fraction * 2.0**-9, (1 + fraction / 8) * 2.0**(exponent - 7.0))
    nearest = numpy.searchsorted((held[1:] + held[:-1]) / 2, numpy.abs(values)).astype(numpy.uint8)
    return nearest | (numpy.signbit(values).astype(numpy.uint8) << 7), numpy.copysign(held[nearest], values)


def stored(values, dtype):
    """The bytes of float32 values in a dtype, and what they hold then."""
    values = values.astype(numpy.float32)
    if dtype == "float32":
        return values.tobytes(), values.astype(numpy.float64)
    if dtype == "float16":
        return values.astype(numpy.float16).tobytes(), values.astype(numpy.float16).astype(numpy.float64)
    if dtype == "float8_e4m3fn":
        codes, held = e4m3(values)
        return codes.tobytes(), held
    bits = values.view(numpy.uint32)
    halves = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(numpy.uint16)
    return halves.tobytes(), (halves.astype(numpy.uint32) << 16).view(numpy.float32).astype(numpy.float64)


def write_tensors(path, tensors):
    """tensors: name -> (dtype, shape, bytes)"""
    header, at = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": FILE_NAMES[dtype], "shape": list(shape), "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(data for _, _, data in tensors.values()))


def read_output(path, name):
    with open(path, "rb") as f:
        everything = f.read()
    length = struct.unpack("<Q", everything[:8])[0]
    tensor = json.loads(everything[8:8 + length])[name]
    first, last = (8 + length + offset for offset in tensor["data_offsets"])
    data = everything[first:last]
    if tensor["dtype"] == "BF16":
        return (numpy.frombuffer(data, numpy.uint16).astype(numpy.uint32) << 16).view(numpy.float32)
    return numpy.frombuffer(data, numpy.float16 if tensor["dtype"] == "F16" else numpy.float32)


def read_tensors(path):
    """As write_tensors takes them."""
    names = {name: dtype for dtype, name in FILE_NAMES.items()}
    with open(path, "rb") as f:
        everything = f.read()
    length = struct.unpack("<Q", everything[:8])[0]
    header = json.loads(everything[8:8 + length])
    return {name: (names[t["dtype"]], t["shape"], everything[slice(*(8 + length + o for o in t["data_offsets"]))])
            for name, t in header.items() if name != "__metadata__"}


def run(command, may_find=""):
    """`may_find`: a kind of finding that does not stop us where the emulator reports nothing else."""
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    found = [line for line in (done.stdout + done.stderr).splitlines() if "(ptx line" in line]
    if done.returncode != 0 and not (may_find and found and all(may_find in line for line in found)):
        sys.exit(f"{os.path.basename(sys.argv[0])}: {' '.join(command)}\n{done.stderr}")
    return done


def counted(profile_path):
    """Sums over the kernels of a profile, and what of each class was executed. `blocks`: how many all are of those that
    were run, where there is one kernel."""
    with open(profile_path, encoding="utf-8") as f:
        kernels = json.load(f)["kernels"]
    classes = {}
    for kernel in kernels:
        for name, count in kernel["instructions"].items():
            classes[name] = classes.get(name, 0) + count
    figures = {key: sum(k[key] for k in kernels)
               for key in ("requested_bytes", "distinct_bytes", "sectors", "bank_conflicts", "barriers",
                           "tensor_multiply_adds")}
    figures["executed"] = sum(count for name, count in classes.items() if name != "move")
    figures["classes"] = {name: count for name, count in classes.items() if count and name != "move"}
    sample = kernels[0].get("sample", {"blocks": 1, "of": 1})
    figures["blocks"] = sample["of"] / sample["blocks"]
    return figures


def assembled(ptx, folder):
    """Registers of the greediest kernel, and bytes of machine code of all. By the newest assembler that Triton
    brings, that for Blackwell: it knows the PTX versions of Triton and of NVRTC; a toolkit's may be older."""
    ptxas = get_ptxas(100).path
    cubin = os.path.join(folder, "assembled.cubin")
    target = re.search(r"^\.target\s+(\S+?)(,|\s|$)", open(ptx, encoding="utf-8").read(), re.M).group(1)
    done = run([ptxas, "-v", f"-arch={target}", ptx, "-o", cubin])
    registers = [int(count) for count in re.findall(r"Used (\d+) registers", done.stderr + done.stdout)]
    sections = run(["readelf", "-SW", cubin]).stdout
    code = [int(line.split("]")[1].split()[4], 16) for line in sections.splitlines() if "] .text." in line]
    return {"registers": max(registers, default=0), "code_bytes": sum(code)}


def compiled(kernel, signature, constants, arch, warps, stages=None):
    """A kernel of Triton's: pointers of its signature are multiples of 16 bytes."""
    types = signature | {name: "constexpr" for name in constants}
    source = ASTSource(fn=kernel, signature=types, constexprs=constants,
                       attrs={(i,): [["tt.divisibility", 16]] for i, t in enumerate(types.values()) if t[0] == "*"})
    options = {"num_warps": warps} | ({"num_stages": stages} if stages else {})
    return triton.compile(source, target=GPUTarget("cuda", arch, 32), options=options)


def parameter_count(ptx):
    return len(re.findall(r"^\s*\.param", ptx.split(".entry")[1].split("{")[0], re.M))


def ptx_run(ptx, kernel, grid, threads, shared, arguments, inputs, result, folder, fusec_run, may_find="", options=()):
    """A peer's kernel on the emulator: `arguments` in fusec-run's words; scratch pointers that Triton appends are null."""
    path, output, profile = (os.path.join(folder, name) for name in ("peer.ptx", "peer.out", "peer.json"))
    with open(path, "w", encoding="utf-8") as f:
        f.write(ptx)
    arguments = [f"--arg={a}" for a in arguments] + ["--arg=null"] * (parameter_count(ptx) - len(arguments))
    for stale in (output, profile):
        if os.path.exists(stale):
            os.remove(stale)
    run([fusec_run, f"--ptx={path}", f"--kernel={kernel}", f"--grid={','.join(map(str, grid))}", f"--block={threads},1,1",
         f"--shared={shared}", *arguments, f"--inputs={inputs}", f"--outputs={output}", f"--profile={profile}", "--json",
         *options], may_find=may_find)
    return counted(profile) | assembled(path, folder) | {"output": read_output(output, result)}


def our_run(model, result, arch, inputs, folder, fusec, fusec_run, options=()):
    """A graph's kernels of ours, likewise."""
    path, ptx, output, profile = (os.path.join(folder, n) for n in ("model.json", "ours.ptx", "ours.out", "ours.json"))
    with open(path, "w", encoding="utf-8") as f:
        json.dump(model, f)
    target = f"--arch={target_name(arch)}"
    run([fusec, path, target, "-o", ptx])
    run([fusec_run, path, target, "--device=emulator", f"--inputs={inputs}", f"--outputs={output}",
         f"--profile={profile}", "--json", *options])
    return counted(profile) | assembled(ptx, folder) | {"output": read_output(output, result)}
