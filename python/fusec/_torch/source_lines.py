"""Which line of a model calls an operator."""

from __future__ import annotations

import os
import re
import traceback
from collections.abc import Iterable, Sequence

import torch

TORCH = os.path.dirname(torch.__file__) + os.sep
LAYERS = os.path.join(TORCH, "nn", "")
NOT_OF_MODELS = (TORCH, "<string>", "<frozen", "<eval_with_key>")
FUSEC = os.path.dirname(os.path.dirname(__file__)) + os.sep


def models_frames(frames: Iterable[traceback.FrameSummary]) -> traceback.StackSummary:
    """The frames of the model and of torch.nn: those after fusec's, which calls PyTorch, which calls the model."""
    kept: list[traceback.FrameSummary] = []
    for frame in frames:
        if frame.filename.startswith(FUSEC):
            kept.clear()
        elif frame.filename.startswith(LAYERS) or not frame.filename.startswith(NOT_OF_MODELS):
            kept.append(frame)
    return traceback.StackSummary.from_list(kept)


def own_line(places: Sequence[tuple[str, int]]) -> str:
    """The innermost line outside PyTorch (`model.py:31`), else the innermost; an empty text where there is none."""
    candidates = [place for place in places if not place[0].startswith(TORCH)] or places
    return f"{os.path.basename(candidates[-1][0])}:{candidates[-1][1]}" if candidates else ""


def source_line(node: torch.fx.Node) -> str:
    """The line of the model that called the operator, from the stack trace that PyTorch keeps."""
    found = re.findall(r'File "([^"]+)", line (\d+)', node.meta.get("stack_trace") or "")
    return own_line([(file, int(line)) for file, line in found])
