#!/usr/bin/env python3
"""generate.py: writes expected.safetensors beside itself, what PyTorch (2.15, on the CPU) answers to cases.py.

A tensor is named DTYPE/CASE. PyTorch's vector code and its scalar code disagree in places, so each case has two rows:
operands repeated to fill vectors, and alone. 16-bit dtypes have two more, the same computed in float32, since fused
intermediates are not rounded. Rows equal to an earlier one are left out."""
import math, os, sys

import torch
import torch.nn.functional as F

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "ops"))
import cases
import model

REPEATS = 64


def answer(case, **operands):
    return eval(case.torch, {"torch": torch, "F": F, "math": math}, operands)  # pylint: disable=eval-used


def elementwise(case, names, operands):
    alone = torch.stack([answer(case, **{n: o[i:i + 1] for n, o in zip(names, operands)})[0]
                         for i in range(len(operands[0]))])
    many = answer(case, **{n: o.repeat_interleave(REPEATS) for n, o in zip(names, operands)})[::REPEATS]
    return [many, alone]


def by_rows(case, x):
    return [answer(case, x=x), torch.cat([answer(case, x=x[i:i + 1]) for i in range(len(x))])]


def by_columns(case, x):
    columns = [answer(case, x=x[:, i:i + 1].contiguous()) for i in range(x.shape[1])]
    return [answer(case, x=x), torch.cat(columns, dim=columns[0].dim() - 1)]


def answers(run, case, wide, *operands):
    found = run(case, *operands)
    if wide:
        found += run(case, *[[o.float() for o in operands[0]]] if isinstance(operands[0], list)
                     else [operands[0].float()])
    return found


def picked(found, n, dim):
    """What is as long as a row, by rows and without most of its elements."""
    for t in found:
        t = t.movedim(0, -1) if dim == 0 else t
        yield t.reshape(len(t), n)[:, cases.kept(n)] if t.dim() > 1 else t


def same(a, b):
    return bool(torch.all((a == b) & (torch.signbit(a) == torch.signbit(b)) | (a != a) & (b != b)))


def main():
    out = {}
    for d in cases.DTYPES:
        dtype, wide = getattr(torch, d), d in ("float16", "bfloat16")

        def keep(name, found):
            kept = []
            for t in found:
                if not any(same(t, k) for k in kept):
                    kept.append(t.contiguous())
            for i, t in enumerate(kept):
                out[f"{d}/{name}/{i}"] = t

        x = torch.tensor(cases.unary_values(d), dtype=torch.float64).to(dtype)
        for case in cases.unary_cases():
            keep(case.name, answers(lambda c, o: elementwise(c, ["x"], o), case, wide, [x]))
        pairs = [torch.tensor(o, dtype=torch.float64).to(dtype) for o in cases.binary_operands(d)]
        for case in cases.binary_cases():
            keep(case.name, answers(lambda c, o: elementwise(c, ["a", "b"], o), case, wide, pairs))
        for n in cases.LENGTHS:
            table = torch.tensor(list(cases.rows(d, n).values()), dtype=torch.float64).to(dtype)
            for case in cases.reduction_cases():
                keep(f"{case.name}[{n}]", picked(answers(by_rows, case, wide, table), n, 1))
            for case in cases.column_cases():
                keep(f"{case.name}[{n}]", picked(answers(by_columns, case, wide, table.T.contiguous()), n, 0))
            for case in cases.norm_cases() if n > 2 and n % 2 == 0 else []:
                images = table.reshape(len(table), 2, n // 2)
                keep(f"{case.name}[{n}]", picked(answers(by_rows, case, wide, images), n, 1))
    model.save(os.path.join(os.path.dirname(os.path.abspath(__file__)), "expected.safetensors"), out)
    print(len(out), "tensors")


if __name__ == "__main__":
    main()
