"""How a peer is timed, as the bench times the layer under test: one CUDA graph a routing with several layers
whose weights rotate, one replay to warm, one between two events; a repeat is the mean over the routings."""

import statistics

import torch


def capture(steps):
    """A graph of all steps (callables that enqueue on the current stream), each run once before."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for step in steps:
            step()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for step in steps:
            step()
    return graph


def replay_us(graph, parts):
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    graph.replay()
    begin.record()
    graph.replay()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1e3 / parts


def time_graphs(graphs, parts, repeat):
    """{median, min, max, n} in us of one part."""
    for graph in graphs:
        graph.replay()
    times = [statistics.fmean(replay_us(g, parts) for g in graphs) for _ in range(repeat)]
    return {"median": statistics.median(times), "min": min(times), "max": max(times), "n": repeat}


def matmul_rate(size=8192, calls=10, repeat=5):
    """TF/s of a square bf16 product on random data."""
    a = torch.randn(size, size, dtype=torch.bfloat16, device="cuda")
    b = torch.randn(size, size, dtype=torch.bfloat16, device="cuda")
    c = torch.empty_like(a)
    graph = capture([lambda: torch.matmul(a, b, out=c)] * calls)
    us = time_graphs([graph], calls, repeat)["median"]
    return 2.0 * size**3 / us / 1e6
