"""Random modules as Python text: an expression for each input, a line for each operator, the results.

A module is made together with its values: a line is drawn, run by eager, and kept if eager takes it and its result is
small enough. So every line is valid, also for odd shapes and dtypes. `Case.text()` is a program that shows one case.

Values are *exact* where eager and a kernel must agree on each bit: inputs are multiples of 1/4, and copies, sums and
choices of exact values are exact. Comparisons, rounding, sorting and casts to integers are drawn of exact values alone,
as the last bit of another would decide.
"""

import dataclasses
import random
import re

import torch

FLOATS = ("float32", "float64", "float16", "bfloat16")
INTEGERS = ("int64", "int32", "uint8")
DTYPES = (*FLOATS, *INTEGERS, "bool")
MOST_ELEMENTS = 4096


@dataclasses.dataclass
class Value:
    """A variable of the module: its tensor in eager, and whether it is exact."""

    name: str
    tensor: torch.Tensor
    exact: bool = True
    is_input: bool = False

    @property
    def rank(self):
        return self.tensor.dim()

    @property
    def is_float(self):
        return self.tensor.is_floating_point()

    @property
    def is_expanded(self):
        return any(n > 1 and s == 0 for n, s in zip(self.tensor.shape, self.tensor.stride()))

    @property
    def dtype(self):
        return str(self.tensor.dtype).removeprefix("torch.")


@dataclasses.dataclass
class Case:
    """A module, its inputs, and how it is compiled."""

    seed: int
    inputs: list  # expressions; sizes are n and m
    lines: list
    results: list  # names
    sizes: list  # (n, m) of each call: two where dynamic
    gradients: bool

    def function(self):
        names = ", ".join(f"x{i}" for i in range(len(self.inputs)))
        body = "".join(f"    {line}\n" for line in self.lines)
        return f"def forward({names}):\n{body}    return {', '.join(self.results)},\n"

    def forward(self, in_float64=False):
        """The module as a function. in_float64: no value is rounded to fewer bits."""
        scope = {"torch": torch, "F": torch.nn.functional}
        exec(widened(self.function()) if in_float64 else self.function(), scope)
        return scope["forward"]

    def arguments(self, n, m, in_float64=False):
        """The inputs of one call, the same each time."""
        torch.manual_seed(self.seed)
        texts = [widened(text) if in_float64 else text for text in self.inputs]
        return [eval(text, {"torch": torch, "n": n, "m": m}) for text in texts]

    def text(self):
        """A program with the compiled and the eager results."""
        inputs = "".join(f"        {text},\n" for text in self.inputs)
        call = "forward(*arguments(n, m))"
        return (
            f"import torch\nfrom torch.nn import functional as F\n\n{self.function()}\n"
            f"def arguments(n, m):\n    torch.manual_seed({self.seed})\n    return [\n{inputs}    ]\n\n"
            f'compiled = torch.compile(forward, backend="fusec", dynamic={len(self.sizes) > 1})\n'
            f"for n, m in {self.sizes}:\n    print({call}, compiled(*arguments(n, m)), sep='\\n')\n"
        )


def widened(text):
    return re.sub(r"\b(float32|float16|bfloat16)\b", "float64", text)


class Generator:
    """Draws one case. `n` and `m` are the sizes that inputs share, so that operands fit each other."""

    def __init__(self, seed):
        self.seed, self.random = seed, random.Random(seed)
        draw = self.random
        self.dynamic = draw.random() < 0.2
        self.gradients = not self.dynamic and draw.random() < 0.2
        self.n, self.m = draw.choice([(2, 3), (3, 4), (4, 4), (1, 5), (5, 2), (8, 6), (3, 1)])
        if self.dynamic:
            self.n, self.m = draw.choice([(3, 4), (4, 6), (5, 3), (8, 6)])
        self.values, self.inputs, self.lines = [], [], []

    def case(self):
        self.draw_inputs()
        wanted = self.random.randint(3, 15)
        for _ in range(8 * wanted):
            if len(self.lines) >= wanted:
                break
            self.draw_line()
        return Case(self.seed, self.inputs, self.lines, self.draw_results(), self.draw_sizes(), self.gradients)

    def draw_sizes(self):
        sizes = [(self.n, self.m)]
        if self.dynamic:
            sizes += [(self.n + self.random.randint(1, 5), self.m + self.random.randint(1, 5))]
        return sizes

    def draw_results(self):
        made = [v.name for v in self.values if not v.is_input] or [self.values[0].name]
        count = min(len(made), self.random.choice((1, 2, 3, 5, 8)))
        return [made[-1], *self.random.sample(made[:-1], count - 1)]

    # --- inputs -----------------------------------------------------------------------------------------------------

    def draw_inputs(self):
        main = self.random.choice(FLOATS) if self.random.random() < 0.75 else self.random.choice(DTYPES)
        for _ in range(self.random.randint(1, 4)):
            dtype = main if self.random.random() < 0.6 else self.random.choice(DTYPES)
            shape = self.random.choice(self.shapes())
            text = self.drawn(dtype, shape)
            text = text if "0" in shape else self.seen(text)
            if self.gradients and dtype in FLOATS:
                text += ".detach().requires_grad_()"
            self.inputs.append(text)
        torch.manual_seed(self.seed)
        for place, text in enumerate(self.inputs):
            tensor = eval(text, {"torch": torch, "n": self.n, "m": self.m})
            self.values.append(Value(f"x{place}", tensor, is_input=True))

    def shapes(self):
        usual = ["n, m", "n, m", "m, n", "n", "m", "2, n, m", "n, m, 4", "n, n", "m, m", "1, n, m, 2", "n, 1"]
        return usual * 2 + ["", "1", "1, 1"] if self.dynamic else usual * 2 + ["", "1", "1, 1", "0, m", "n, 0", "0"]

    @staticmethod
    def drawn(dtype, shape):
        if dtype == "bool":
            return f"(torch.randint(0, 2, ({shape}{',' * bool(shape)})) == 1)"
        low, high = (0, 9) if dtype == "uint8" else (-8, 9)
        text = f"torch.randint({low}, {high}, ({shape}{',' * bool(shape)}))"
        return f"({text} / 4).to(torch.{dtype})" if dtype in FLOATS else f"{text}.to(torch.{dtype})"

    def seen(self, text):
        """The tensor, or a view of it with other strides."""
        rank = eval(text, {"torch": torch, "n": self.n, "m": self.m}).dim()
        kinds = ["{}"] * 6
        if rank >= 2:
            kinds += ["{}.transpose(0, 1)", "{}.movedim(-1, 0)", "{}[:, ::2]"]
            kinds += ["{}[:1].expand(n, *[-1] * %d)" % (rank - 1)]
        if rank >= 1:
            kinds += ["{}.repeat_interleave(2, -1)[..., ::2]", "torch.cat([{0}, {0}])[1:]"]
            kinds += ["{}.unsqueeze(0).expand(m, *[-1] * %d)" % rank]
        return self.random.choice(kinds).format(text)

    # --- operators ----------------------------------------------------------------------------------------------------

    def draw_line(self):
        from random_operators import OPERATORS

        operator = self.random.choice(OPERATORS)
        try:
            drawn = operator(self)
        except IndexError:  # there is no such operand
            return
        if drawn is None:
            return
        name = f"v{len(self.lines)}"
        text, operands, exact = drawn
        written = re.match(r"(\w+)[.\[].*?[a-z]_\(", text)
        target = next((v for v in self.values if written and v.name == written[1]), None)
        scope = {v.name: v.tensor for v in self.values} | {"torch": torch, "F": torch.nn.functional}
        before = None if target is None else {v.name: v.tensor.clone() for v in self.values}
        try:
            result = eval(text, scope)
        except (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError):
            return
        if not isinstance(result, torch.Tensor) or result.numel() > MOST_ELEMENTS or not tame(result):
            if before is not None:
                with torch.no_grad():
                    for v in self.values:
                        if not v.is_expanded:
                            v.tensor.data.copy_(before[v.name])
            return
        exact = exact and all(v.exact for v in operands)
        self.lines.append(f"{name} = {text}")
        self.values.append(Value(name, result, exact))
        if target is not None and not exact:  # others may be views of the same memory
            for v in self.values:
                v.exact = v.exact and not shares(v.tensor, result)

    def any(self, accept=lambda v: True):
        """One of the values; the later ones are more likely."""
        found = [v for v in self.values if accept(v)]
        return self.random.choice(found[-4:] if self.random.random() < 0.6 else found)

    def float(self, least_rank=0):
        return self.any(lambda v: v.is_float and v.rank >= least_rank)

    def exact(self, accept=lambda v: True):
        return self.any(lambda v: v.exact and accept(v))

    def dim(self, value):
        """A dimension of the value, from the start or from the end."""
        return self.random.randrange(-value.rank, value.rank) if value.rank else 0


def shares(a, b):
    return a.numel() > 0 and b.numel() > 0 and a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


def tame(tensor):
    """Neither so large that 16 bits overflow nearby, nor infinite or NaN."""
    if tensor.numel() == 0 or not tensor.is_floating_point():
        return True
    return bool(tensor.isfinite().all()) and float(tensor.detach().abs().max()) < 1000
