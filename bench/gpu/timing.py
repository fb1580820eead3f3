"""Times on the device's clock: launches are captured into graphs, so that the host has no part in them."""
import statistics
import time


class Captured:
    """Launches (functions that enqueue on the current stream, on different data each, so that caches do not flatter) as a
    CUDA graph. What they return is kept, so that each writes to memory of its own."""

    def __init__(self, torch, launches):
        self.launches, self.stream = len(launches), torch.cuda.Stream()
        self.begin, self.end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        self.torch, self.graph = torch, torch.cuda.CUDAGraph()
        torch.cuda.synchronize()  # the operands are made on another stream
        with torch.cuda.stream(self.stream):
            for launch in launches:
                launch()
            self.stream.synchronize()
            with torch.cuda.graph(self.graph, stream=self.stream):
                self.results = [launch() for launch in launches]

    def seconds(self, times):
        """Of one launch, the mean of that many replays."""
        with self.torch.cuda.stream(self.stream):
            self.begin.record()
            for _ in range(times):
                self.graph.replay()
            self.end.record()
            self.end.synchronize()
        return max(self.begin.elapsed_time(self.end) * 1e-3, 1e-7) / times / self.launches


def median_seconds(captured, warm=0.3, burst=0.02, repeats=5):
    """By name, of several graphs by name. An idle device has a low clock, so it is kept busy for `warm` seconds first; the
    graphs take turns, so that a clock that sinks slows all of them."""
    times = {name: max(1, round(burst / (c.launches * c.seconds(2)))) for name, c in captured.items()}
    warmed = time.monotonic() + warm
    while time.monotonic() < warmed:
        for name, c in captured.items():
            c.seconds(times[name])
    samples = {name: [] for name in captured}
    for _ in range(repeats):
        for name, c in captured.items():
            samples[name].append(c.seconds(times[name]))
    return {name: statistics.median(taken) for name, taken in samples.items()}


def copy_rate(torch, megabytes, **timing):
    """Bytes a second, read and written, of a copy within the device: the ceiling of what only moves memory."""
    words = int(megabytes * 2**18)
    source, target = (torch.empty(words, device="cuda") for _ in range(2))
    source.normal_()
    return 2 * 4 * words / median_seconds({"copy": Captured(torch, [lambda: target.copy_(source)])}, **timing)["copy"]


def product_rate(torch, dtype, size, **timing):
    """Floating-point operations a second of cuBLAS's product: the ceiling of what multiplies."""
    a, b, out = (torch.randn(size, size, device="cuda").to(dtype) for _ in range(3))
    captured = Captured(torch, [lambda: torch.mm(a, b, out=out)])
    return 2.0 * size**3 / median_seconds({"product": captured}, **timing)["product"]


def host_seconds(torch, launch, launches=2000):
    """What the host needs to enqueue, in batches that the device keeps up with."""
    torch.cuda.synchronize()
    best = float("inf")
    for _ in range(5):
        began = time.perf_counter()
        for _ in range(launches // 5):
            launch()
        best = min(best, (time.perf_counter() - began) / (launches // 5))
        torch.cuda.synchronize()
    return best
