"""Peer: Humming (PyPI humming-kernels; compiles its kernels when first asked), fp8 with 128x128 weight scales
and 1x128 row scales, its default heuristics for each shape. Row quantiser, FC1, SwiGLU with requantisation,
FC2, weighted sum. Two forms of its products, of which the faster counts: entries by index, and grouped by
expert after a scatter in the quantiser."""

import importlib.metadata
import json

import numpy as np
import torch

import peer_kernels as pk
from bench_rows import rotated

FORMATS = ("fp8_block",)
SWIGLU = "a / (1.f + __expf(-a)) * b"


def missing():
    """Why this peer cannot run here, or None."""
    try:
        import humming  # noqa: F401
        import humming.ops  # noqa: F401
    except ImportError as error:
        return f"humming-kernels is not installed ({error})"
    return None


def version():
    return "humming-kernels " + importlib.metadata.version("humming-kernels")


def seen(v):
    """Vectors as the products see them."""
    return pk.through_fp8(v)


class Layer:
    """One shape's weights; step() gives what one layer of a graph enqueues."""

    modes = ("indexed", "grouped_contiguous")

    def __init__(self, shape, form, generator):
        from humming.schema import HummingInputSchema, HummingWeightSchema
        from humming.transform import prepare_layer_config, transform_humming_tensors

        self.shape = shape
        h, i, e = shape.hidden, shape.intermediate, shape.experts
        self.codes, self.scales, self.configs, self.tensors = [], [], [], []
        for n, k in ((2 * i, h), (h, i)):
            codes = pk.random_fp8((e, n, k), generator)
            scales = pk.random_scales((e, n // 128, k // 128), generator)
            config = prepare_layer_config(
                shape_n=n,
                shape_k=k,
                weight_schema=HummingWeightSchema(
                    b_dtype="float8e4m3", weight_scale_group_size=128, weight_scale_group_size_n=128
                ),
                input_schema=HummingInputSchema(a_dtype="float8e4m3", input_scale_group_size=128),
                num_experts=e,
                torch_dtype=torch.bfloat16,
                device=torch.device("cuda", 0),
            )
            tensors = {"weight": codes.view(torch.int32), "weight_scale": scales}
            self.codes.append(codes)
            self.scales.append(scales)
            self.configs.append(config)
            self.tensors.append(transform_humming_tensors(config, tensors))
        self.locks = torch.zeros(2048, dtype=torch.int32, device="cuda")
        self.between = {}

    def prepare(self, rows_of_cases):
        """Compiles the products of all cases at once, on all cores."""
        from humming.kernel.humming import HummingKernel

        wanted = {}
        for rows in rows_of_cases:
            for mode in self.modes:
                for config, tuning in zip(self.configs, self.tuning(mode, rows * self.shape.k)):
                    given = json.loads(config.to_str()) | {"gemm_type": mode} | tuning
                    given.pop("num_sms", None)
                    wanted[json.dumps(given, default=str)] = (HummingKernel, given)
        HummingKernel.compile_many(wanted.values(), 0)

    def expert(self, e):
        def matrix(codes, scales):
            wide = scales.repeat_interleave(128, 0).repeat_interleave(128, 1)
            return codes.float() * wide

        return tuple(matrix(c[e], s[e]) for c, s in zip(self.codes, self.scales))

    def tuning(self, mode, entries):
        from humming.tune import get_heuristics_config

        return [get_heuristics_config(c, shape_m=entries, gemm_type=mode) for c in self.configs]

    def buffers(self, entries):
        """What all layers write and read in turn."""
        if entries not in self.between:
            self.between = {
                entries: tuple(
                    torch.empty(entries, columns, dtype=torch.bfloat16, device="cuda")
                    for columns in (2 * self.shape.intermediate, self.shape.hidden)
                )
            }
        return self.between[entries]

    def step(self, mode, x, ids, weights, layer, out):
        from humming import ops
        from humming.forward import may_process_input

        shape, ids = self.shape, rotated(ids, layer, self.shape.experts)
        entries = ids.size
        tunings = self.tuning(mode, entries)
        w = torch.from_numpy(weights).cuda()
        order = np.argsort(ids.reshape(-1), kind="stable")
        counts = np.bincount(ids.reshape(-1), minlength=shape.experts)
        if mode == "indexed":
            metadata = [indexed(order, counts, t["block_shape"][0]) for t in tunings]
            place = torch.arange(entries, dtype=torch.int32).reshape(ids.shape).cuda()
            scatter = {}
        else:
            ends = torch.from_numpy(np.concatenate(([0], np.cumsum(counts)))).to(torch.int64).cuda()
            metadata = [{"expert_layout": ends}] * 2
            places = np.empty(entries, dtype=np.int32)
            places[order] = np.arange(entries, dtype=np.int32)
            place = torch.from_numpy(places).reshape(ids.shape).cuda()
            scatter = {"layout": "scatter", "scatter_idx": place}
        fc1, fc2 = self.buffers(entries)
        compute = '{"gemm_type": "%s"}' % mode

        def product(which, rows, scale, to, top_k):
            ops.humming_gemm(
                layer_config=self.configs[which].to_str(),
                compute_config=compute,
                tuning_config=json.dumps(tunings[which]),
                inputs=rows,
                input_scale=scale,
                outputs=to,
                locks=self.locks,
                top_k=top_k,
                valid_shape_m=entries,
                **self.tensors[which],
                **metadata[which],
            )

        def enqueue():
            rows, scale, _ = may_process_input(self.configs[0], x, **scatter)
            product(0, rows, scale, fc1, shape.k if mode == "indexed" else 1)
            mid, scale, _ = may_process_input(
                self.configs[1], fc1, activation_type="binary_split", activation_impl=SWIGLU
            )
            product(1, mid, scale, fc2, 1)
            pk.weighted_sum(fc2, place, w, out)

        return enqueue


def indexed(order, counts, block):
    """Entry numbers by expert, each expert's padded to whole blocks with the number of entries."""
    ids, experts, at = [], [], 0
    for expert, count in enumerate(counts.tolist()):
        padded = -(-count // block) * block
        ids.append(np.concatenate((order[at : at + count], np.full(padded - count, order.size))))
        experts += [expert] * (padded // block)
        at += count
    ids = np.concatenate(ids).astype(np.int32)
    return {
        "sorted_ids": torch.from_numpy(ids).cuda(),
        "expert_ids": torch.tensor(experts, dtype=torch.int32, device="cuda"),
        "num_tokens_padded": torch.tensor(ids.size, dtype=torch.int32, device="cuda"),
    }
