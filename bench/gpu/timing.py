"""Times on the device's clock: launches are captured into a graph, so that the host has no part in them."""
import statistics
import time


def device_seconds(torch, launches, least_seconds=0.02, repeats=5):
    """The median time of one of `launches` (functions that enqueue on the current stream, on different data each, so that
    caches do not flatter)."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for launch in launches:
            launch()
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            for launch in launches:
                launch()
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)

        def replayed(times):
            begin.record()
            for _ in range(times):
                graph.replay()
            end.record()
            end.synchronize()
            return begin.elapsed_time(end) * 1e-3

        once = max(replayed(2) / 2, 1e-6)
        times = max(1, round(least_seconds / once))
        return statistics.median(replayed(times) for _ in range(repeats)) / times / len(launches)


def copy_rate(torch, megabytes=1024):
    """Bytes a second, read and written, of a copy within the device: the ceiling of what only moves memory."""
    words = megabytes << 18
    source, target = torch.empty(words, device="cuda"), torch.empty(words, device="cuda")
    source.normal_()
    return 2 * 4 * words / device_seconds(torch, [lambda: target.copy_(source)])


def product_rate(torch, size=8192):
    """Floating-point operations a second of cuBLAS's bfloat16 product: the ceiling of what multiplies."""
    a = torch.randn(size, size, device="cuda", dtype=torch.bfloat16)
    b = torch.randn(size, size, device="cuda", dtype=torch.bfloat16)
    out = torch.empty_like(a)
    return 2.0 * size**3 / device_seconds(torch, [lambda: torch.mm(a, b, out=out)])


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
