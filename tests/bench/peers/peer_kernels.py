"""What a peer needs beside its products, as one fused kernel each, so that no peer pays for the framework:
SwiGLU, and the weighted sum of a row's entries."""

import torch
import triton
import triton.language as tl


@triton.jit
def _swiglu(fc1, mid, columns: tl.constexpr, block: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    c = tl.program_id(1) * block + tl.arange(0, block)
    inside = c < columns
    gate = tl.load(fc1 + row * 2 * columns + c, mask=inside).to(tl.float32)
    up = tl.load(fc1 + row * 2 * columns + columns + c, mask=inside).to(tl.float32)
    tl.store(mid + row * columns + c, (gate * tl.sigmoid(gate) * up).to(tl.bfloat16), mask=inside)


def swiglu(fc1, mid):
    rows, columns = mid.shape
    _swiglu[(rows, triton.cdiv(columns, 1024))](fc1, mid, columns, 1024)


@triton.jit
def _weighted_sum(y, place, weight, out, k: tl.constexpr, columns: tl.constexpr, block: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    c = tl.program_id(1) * block + tl.arange(0, block)
    inside = c < columns
    total = tl.zeros((block,), tl.float32)
    for j in range(k):
        at = tl.load(place + row * k + j).to(tl.int64)
        w = tl.load(weight + row * k + j)
        total += w * tl.load(y + at * columns + c, mask=inside).to(tl.float32)
    tl.store(out + row * columns + c, total.to(tl.bfloat16), mask=inside)


def weighted_sum(y, place, weight, out):
    """out[r] = sum over j of weight[r, j] * y[place[r, j]]."""
    rows, columns = out.shape
    _weighted_sum[(rows, triton.cdiv(columns, 1024))](y, place, weight, out, place.shape[1], columns, 1024)


def random_fp8(shape, generator):
    """E4M3 of normal x 100, made in pieces."""
    codes = torch.empty(shape, dtype=torch.float8_e4m3fn, device="cuda")
    for piece in codes:
        values = torch.randn(piece.shape, device="cuda", generator=generator)
        piece.copy_((values * 100).clamp_(-448, 448))
    return codes


def random_scales(shape, generator):
    return (torch.rand(shape, device="cuda", generator=generator) + 0.5) * 1e-4


def random_bf16(shape, generator):
    values = torch.empty(shape, dtype=torch.bfloat16, device="cuda")
    for piece in values:
        piece.normal_(std=0.01, generator=generator)
    return values


def through_fp8(v):
    """f32 values quantised 1x128 to E4M3 and back."""
    blocks = v.reshape(-1, 128)
    scale = (blocks.abs().amax(1, keepdim=True) / 448).clamp(min=2.0**-126)
    return ((blocks / scale).to(torch.float8_e4m3fn).float() * scale).reshape(v.shape)


def reference(x, ids, weights, expert, rows, seen):
    """f32 results of a few rows; expert(e) gives f32 FC1 [2I, H] (gate first) and FC2 [H, I]; seen(v) is a
    vector as the products see it."""
    out = []
    for r in rows:
        total = torch.zeros(x.shape[1], device="cuda")
        for j, e in enumerate(ids[r].tolist()):
            fc1, fc2 = expert(e)
            gate, up = (fc1 @ seen(x[r].float())).chunk(2)
            total += float(weights[r, j]) * (fc2 @ seen(torch.nn.functional.silu(gate) * up))
        out.append(total)
    return torch.stack(out)


def relative_error(out, truth):
    return float((out.float() - truth).norm() / truth.norm())
