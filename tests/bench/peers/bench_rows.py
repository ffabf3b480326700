"""The rows of `moetier bench kernels --part device` as its peers need them: shapes, who is routed where, and
how weights rotate. The same rules as actors/cli/device_rows.hpp and actors/cli/device_routing.hpp; a test
compares both with routing_vectors.txt. Pure, NumPy only."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Shape:
    name: str
    hidden: int
    intermediate: int
    experts: int  # slots of the worker
    k: int
    bias: bool = False  # and the activation swiglu_bias


SHAPES = {
    s.name: s
    for s in (
        Shape("dsv3_ep8", 7168, 2048, 32, 1),
        Shape("qwen3", 2048, 768, 128, 8),
        Shape("mixtral", 4096, 14336, 8, 2),
        Shape("gpt_oss", 2880, 2880, 128, 4, bias=True),
    )
}

# What is compared where no bench document names the rows.
DEFAULT_ROWS = (
    ("dsv3_ep8", "fp8_block", (1, 8, 64, 256, 1024, 4096, 16384)),
    ("dsv3_ep8", "bf16", (8, 256, 4096)),
    ("qwen3", "fp8_block", (1, 8, 64, 1024, 16384)),
    ("qwen3", "bf16", (1, 8, 64, 1024, 16384)),
    ("mixtral", "bf16", (1, 64, 1024, 4096)),
)

BYTES_OF_WEIGHT = {"fp8_block": 1, "bf16": 2}
GRAPH_BYTES = 6 << 30  # of weights read by one graph, where 2..16 layers allow it


def mix(x):
    """splitmix64, as schemas/base/mix.hpp; arrays of uint64."""
    with np.errstate(over="ignore"):
        x = np.asarray(x, dtype=np.uint64) + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def draws(seed, routing, rows, k):
    """uint64 [rows, k]: the draw of each entry."""
    start = mix(mix(seed) ^ np.uint64(routing))
    places = np.arange(rows, dtype=np.uint64)[:, None] * np.uint64(64) + np.arange(k, dtype=np.uint64)
    return mix(start ^ places)


def route(shape, rows, kind, seed, routing):
    """int32 ids and f32 weights, both [rows, k]. kind: "random" = k distinct experts a row, all sets equally
    likely; "equal" = entry e asks expert e mod E."""
    drawn = draws(seed, routing, rows, shape.k)
    if kind == "equal":
        entries = np.arange(rows * shape.k, dtype=np.int64).reshape(rows, shape.k)
        ids = entries % shape.experts
    else:
        pool = np.tile(np.arange(shape.experts, dtype=np.int64), (rows, 1))
        every = np.arange(rows)
        for j in range(shape.k):
            at = j + (drawn[:, j] % np.uint64(shape.experts - j)).astype(np.int64)
            pool[every, at], pool[every, j] = pool[every, j].copy(), pool[every, at].copy()
        ids = pool[:, : shape.k]
    weights = 0.5 + (mix(drawn) >> np.uint64(40)).astype(np.float64) * 2.0**-24
    return ids.astype(np.int32), weights.astype(np.float32)


def routings(rows):
    return 8 if rows <= 512 else 2


def expected_active(shape, rows):
    return shape.experts * (1.0 - (1.0 - shape.k / shape.experts) ** rows)


def layers(shape, form, rows):
    """Layers of one graph: enough that weights have left the caches before they are read again."""
    expert = 3 * shape.hidden * shape.intermediate * BYTES_OF_WEIGHT[form]
    return max(2, min(16, int(GRAPH_BYTES / (expected_active(shape, rows) * expert))))


def rotated(ids, layer, experts):
    """The same entries with the weights that layer `layer` of a graph uses: active experts, ascending, take
    the next places of the pool."""
    active = np.unique(ids)
    rank = np.searchsorted(active, ids)
    return ((layer * len(active) + rank) % experts).astype(np.int32)


def checksum(ids):
    """One number for a routing: h = mix(h ^ id) over all entries, from 0."""
    mask = (1 << 64) - 1
    h = 0
    for i in ids.reshape(-1).tolist():
        x = ((h ^ i) + 0x9E3779B97F4A7C15) & mask
        x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & mask
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & mask
        h = x ^ (x >> 31)
    return h
