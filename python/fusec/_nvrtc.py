"""Where the NVRTC of the wheel ``nvidia-cuda-nvrtc`` lies, and what to do where there is none."""

from __future__ import annotations

import functools
import os

from . import _core


@functools.cache
def library() -> str:
    """The absolute path of libnvrtc, or "" where the wheel is not installed. Imports nothing of the wheel's."""
    import importlib.util

    spec = importlib.util.find_spec("nvidia")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for place in ("cu13/lib/libnvrtc.so.13", "cuda_nvrtc/lib/libnvrtc.so.13"):
            path = os.path.join(folder, place)
            if os.path.exists(path):
                return os.path.abspath(path)
    return ""


def advice(options: _core.Options) -> str:
    """How to get NVRTC; "" where a compilation with these options finds it."""
    return next((f.advice for f in _core.examine(options) if f.subject == "NVRTC"), "")
