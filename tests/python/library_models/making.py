"""How the tables of this folder make their models: the same each time, and no parameter hides a part of the network."""

import torch


def rand(*shape, seed=1):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def ids(rows=1, length=6, vocabulary=90, seed=1):
    return torch.randint(3, vocabulary, (rows, length), generator=torch.Generator().manual_seed(seed))


def made(build):
    """The module that `build()` makes, in eval mode, its constant parameters shaken.

    Libraries start gates and the last layers of blocks at zero, which would hide errors in what they multiply."""
    torch.manual_seed(0)
    module = build().eval()
    generator = torch.Generator().manual_seed(2)

    def noise(like):
        return 0.1 * torch.randn(like.shape, generator=generator)

    with torch.no_grad():
        for parameter in module.parameters():
            if (
                parameter.is_floating_point()
                and parameter.numel() > 1
                and bool((parameter == parameter.flatten()[0]).all())
            ):
                parameter.add_(noise(parameter))
        for name, buffer in module.named_buffers():
            if name.endswith("running_mean"):
                buffer.add_(noise(buffer))
            elif name.endswith("running_var"):
                buffer.mul_(1 + noise(buffer).abs())
    return module
