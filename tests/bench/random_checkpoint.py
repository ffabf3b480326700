#!/usr/bin/env python3
"""Writes a checkpoint of DeepSeek-V3's shape with random weights: one MoE layer, FP8 in blocks of 128x128, so that
a tier can be measured at full size on a machine that has no such model.

    random_checkpoint.py DIR [--experts 32] [--hidden 7168] [--intermediate 2048] [--top-k 8]

With the defaults it holds what one of eight workers holds: 1.4 GB. Weights are normal with the deviation that keeps
a row's size; every matrix is a window into one block of random codes, so writing takes as long as the disk does.
"""
import argparse
import json
import pathlib
import struct

import numpy as np


def e4m3_values():
    """What the 256 codes mean; NaN for the two that mean nothing."""
    codes = np.arange(256)
    sign, exponent, mantissa = codes >> 7, codes >> 3 & 15, codes & 7
    values = np.where(exponent == 0, mantissa / 8 * 2.0**-6, (1 + mantissa / 8) * 2.0 ** (exponent - 7.0))
    values[(codes & 0x7F) == 0x7F] = np.nan
    return np.where(sign == 1, -values, values)


def normal_codes(count, random):
    """Codes of normal values of deviation 16, the nearest each."""
    values = e4m3_values()
    order = np.argsort(values)[: 254]  # NaN sorts last
    middles = (values[order][1:] + values[order][:-1]) / 2
    table = order[np.searchsorted(middles, 16 * random.standard_normal(1 << 16))].astype(np.uint8)
    return table[random.integers(0, 1 << 16, count, np.uint16)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--experts", type=int, default=32)
    parser.add_argument("--hidden", type=int, default=7168)
    parser.add_argument("--intermediate", type=int, default=2048)
    parser.add_argument("--top-k", type=int, default=8)
    a = parser.parse_args()
    random = np.random.default_rng(1)
    a.directory.mkdir(parents=True, exist_ok=True)
    (a.directory / "config.json").write_text(json.dumps({
        "model_type": "deepseek_v3", "hidden_act": "silu", "hidden_size": a.hidden,
        "moe_intermediate_size": a.intermediate,
        "first_k_dense_replace": 0, "num_hidden_layers": 1, "moe_layer_freq": 1, "n_routed_experts": a.experts,
        "n_shared_experts": 0, "num_experts_per_tok": a.top_k, "n_group": 1, "topk_group": 1, "topk_method": "noaux_tc",
        "scoring_func": "sigmoid", "norm_topk_prob": True, "routed_scaling_factor": 2.5, "torch_dtype": "bfloat16",
        "quantization_config": {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic",
                                "weight_block_size": [128, 128]}}))

    matrix = a.hidden * a.intermediate
    pool = normal_codes(2 * matrix, random)
    entries = {}  # name: (dtype, shape, maker of its bytes)
    prefix = "model.layers.0.mlp."
    for expert in range(a.experts):
        for part, out, inner in (("gate_proj", a.intermediate, a.hidden), ("up_proj", a.intermediate, a.hidden),
                                 ("down_proj", a.hidden, a.intermediate)):
            name = f"{prefix}experts.{expert}.{part}.weight"
            start = int(random.integers(0, matrix))
            entries[name] = ("F8_E4M3", [out, inner], lambda start=start: pool[start:start + matrix].tobytes())
            blocks = [-(-out // 128), -(-inner // 128)]
            scale = np.full(blocks, 1 / 16 / np.sqrt(inner), np.float32)
            entries[name + "_scale_inv"] = ("F32", blocks, lambda scale=scale: scale.tobytes())
    entries[prefix + "gate.weight"] = ("F32", [a.experts, a.hidden], lambda: (
        random.standard_normal((a.experts, a.hidden)) / np.sqrt(a.hidden)).astype(np.float32).tobytes())
    entries[prefix + "gate.e_score_correction_bias"] = ("F32", [a.experts],
                                                        lambda: np.zeros(a.experts, np.float32).tobytes())

    header, at = {}, 0
    for name, (dtype, shape, _) in entries.items():
        size = int(np.prod(shape)) * (1 if dtype == "F8_E4M3" else 4)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(a.directory / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, _, bytes_of in entries.values():
            file.write(bytes_of())


if __name__ == "__main__":
    main()
