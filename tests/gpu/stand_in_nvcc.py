#!/usr/bin/env python3
"""nvcc for tests without a GPU: the host part of out.cu, compiled by the C++ compiler against the stand-in of the CUDA
runtime (runtime/host_part/stand_in). The library loads the kernels' PTX, which fusec ($FUSEC) makes of NAME.model.json
beside NAME.cu, into the stand-in of the driver (FUSEC_CUDA_DRIVER)."""
import os
import re
import shutil
import subprocess
import sys

STAND_IN = os.path.join(os.path.dirname(__file__), "..", "..", "runtime", "host_part", "stand_in")
EMPTY_PTX = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry {}() {{ ret; }}\n"
HEAD = """#include "cuda_runtime.h"
#include <dlfcn.h>
#include <stdlib.h>
extern "C" {
const fusec_recorded_runtime* fusec_runtime = nullptr;
KERNELS}
namespace {
const char kPtx[] = R"ptx(PTX)ptx";
__attribute__((constructor)) void load() {
  void* const driver = dlopen(getenv("FUSEC_CUDA_DRIVER"), RTLD_NOW | RTLD_LOCAL);
  if (!driver) abort();
  fusec_runtime = static_cast<const fusec_recorded_runtime*>(dlsym(driver, "fusec_stand_in_runtime"));
  void* module = nullptr;
  if (reinterpret_cast<int (*)(void**, const void*)>(dlsym(driver, "cuModuleLoadData"))(&module, kPtx) != 0) abort();
}
}
"""


def main():
    source, library = next(a for a in sys.argv if a.endswith(".cu")), sys.argv[sys.argv.index("-o") + 1]
    stem = source.removesuffix(".cu")
    with open(source, encoding="utf-8") as file:
        text = file.read()
    kernels = re.findall(r'extern "C" __global__[^{;]*?\b(?!__)(\w+)\(', text)
    if os.path.exists(stem + ".model.json"):
        subprocess.run([os.environ["FUSEC"], stem + ".model.json", "--arch=sm_90a", "--no-cache", "--quiet",
                        f"--emit=ptx={stem}.ptx"], check=True)
        with open(stem + ".ptx", encoding="utf-8") as file:
            ptx = file.read()
        host = text[text.index("\n#ifndef __CUDACC_RTC__"):]
    else:  # a file of empty kernels
        ptx, host = EMPTY_PTX.format(kernels[0]), re.sub(r'extern "C" __global__.*', "", text)
    parts = [HEAD.replace("KERNELS", "".join(f"void {kernel}() {{}}\n" for kernel in kernels)).replace("PTX", ptx), host]
    with open(stem + ".cpp", "w", encoding="utf-8") as file:
        file.write("\n".join(parts))
    compiler = os.environ.get("CXX") or next(filter(shutil.which, ("c++", "g++", "clang++")))
    return subprocess.run([compiler, "-std=c++17", "-O0", "-w", "-fPIC", "-shared", "-I", STAND_IN, stem + ".cpp", "-o",
                           library, "-ldl"], check=False).returncode


sys.exit(main())
