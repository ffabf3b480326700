"""A small attention service: everything of a Qwen3-MoE model but its experts, in NumPy.

It reads a Hugging Face checkpoint, keeps the attention weights, the gates and the KV cache, and hands every MoE block
to a tier: hidden rows and router logits go out, the experts' weighted sum comes back. Arithmetic is f32 on the stored
bf16 weights. The model's words: H hidden size, D head size, T tokens of this call, P position of the first of them.
"""
import json
import pathlib
import struct

import numpy as np


class Checkpoint:
    """Named tensors of one model.safetensors file, as f32, read when asked for."""

    def __init__(self, path):
        self._data = np.memmap(path, np.uint8, "r")
        (size,) = struct.unpack("<Q", self._data[:8].tobytes())
        self._start = 8 + size
        self._entries = json.loads(self._data[8:self._start].tobytes())

    def __getitem__(self, name):
        entry = self._entries[name]
        begin, end = entry["data_offsets"]
        raw = self._data[self._start + begin:self._start + end]
        if entry["dtype"] == "BF16":
            values = (raw.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
        elif entry["dtype"] == "F32":
            values = raw.view(np.float32)
        else:
            raise ValueError(f"{name} has dtype {entry['dtype']}; this service reads BF16 and F32")
        return values.reshape(entry["shape"])


def rms_norm(x, weight, eps):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + np.float32(eps)) * weight


def rotate(x, cos, sin):
    """Rotary position embedding of [T, heads, D]: the two halves of each head turn against each other."""
    half = x.shape[-1] // 2
    turned = np.concatenate([-x[..., half:], x[..., :half]], axis=-1)
    return x * cos[:, None, :] + turned * sin[:, None, :]


class Attention:
    """One layer's attention with its own growing cache of keys and values."""

    def __init__(self, config, weights, prefix):
        self.heads = config["num_attention_heads"]
        self.kv_heads = config["num_key_value_heads"]
        self.size = config["head_dim"]
        self.eps = config["rms_norm_eps"]
        self.q, self.k, self.v, self.o = (weights[f"{prefix}.{p}_proj.weight"] for p in "qkvo")
        self.q_norm, self.k_norm = weights[f"{prefix}.q_norm.weight"], weights[f"{prefix}.k_norm.weight"]
        self.forget()

    def forget(self):
        self.keys = np.zeros((0, self.kv_heads, self.size), np.float32)
        self.values = np.zeros((0, self.kv_heads, self.size), np.float32)

    def __call__(self, x, cos, sin):
        tokens, past = x.shape[0], self.keys.shape[0]
        q = rotate(rms_norm((x @ self.q.T).reshape(tokens, self.heads, self.size), self.q_norm, self.eps), cos, sin)
        k = rotate(rms_norm((x @ self.k.T).reshape(tokens, self.kv_heads, self.size), self.k_norm, self.eps), cos, sin)
        v = (x @ self.v.T).reshape(tokens, self.kv_heads, self.size)
        self.keys, self.values = np.concatenate([self.keys, k]), np.concatenate([self.values, v])

        group = self.heads // self.kv_heads  # query heads that share one key and value head
        keys, values = self.keys.repeat(group, axis=1), self.values.repeat(group, axis=1)
        scores = np.einsum("thd,shd->hts", q, keys) / np.float32(np.sqrt(self.size))
        ahead = np.arange(past + tokens)[None, :] > past + np.arange(tokens)[:, None]
        scores = np.where(ahead[None], np.float32(-np.inf), scores)
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        scores /= scores.sum(axis=-1, keepdims=True)
        return np.einsum("hts,shd->thd", scores, values).reshape(tokens, -1) @ self.o.T


class AttentionService:
    """The model without experts; a tier session computes what its gates choose."""

    def __init__(self, model_dir, session):
        model_dir = pathlib.Path(model_dir)
        config = json.loads((model_dir / "config.json").read_text())
        weights = Checkpoint(model_dir / "model.safetensors")
        self.session = session
        self.eps = config["rms_norm_eps"]
        self.theta = config["rope_parameters"]["rope_theta"]
        self.head_size = config["head_dim"]
        self.embedding = weights["model.embed_tokens.weight"]
        self.final_norm = weights["model.norm.weight"]
        self.vocabulary = weights["lm_head.weight"]
        self.layers = []
        for i in range(config["num_hidden_layers"]):
            prefix = f"model.layers.{i}"
            self.layers.append({
                "attention": Attention(config, weights, f"{prefix}.self_attn"),
                "attention_norm": weights[f"{prefix}.input_layernorm.weight"],
                "moe_norm": weights[f"{prefix}.post_attention_layernorm.weight"],
                "gate": weights[f"{prefix}.mlp.gate.weight"],
            })
        self.position = 0

    def forget(self):
        """Starts a new text."""
        self.position = 0
        for layer in self.layers:
            layer["attention"].forget()

    def _angles(self, tokens):
        frequency = self.theta ** (-np.arange(0, self.head_size, 2, dtype=np.float32) / np.float32(self.head_size))
        angle = (self.position + np.arange(tokens, dtype=np.float32))[:, None] * frequency[None, :]
        angle = np.concatenate([angle, angle], axis=-1).astype(np.float32)
        return np.cos(angle), np.sin(angle)

    def step(self, tokens):
        """Feeds token ids; returns the logits of the next token."""
        x = self.embedding[np.asarray(tokens)]
        cos, sin = self._angles(len(tokens))
        with self.session.step() as step:  # one pass through all layers
            for i, layer in enumerate(self.layers):
                x = x + layer["attention"](rms_norm(x, layer["attention_norm"], self.eps), cos, sin)
                hidden = rms_norm(x, layer["moe_norm"], self.eps)
                x = x + step.forward(layer=i, hidden=hidden, logits=hidden @ layer["gate"].T)
        self.position += len(tokens)
        return rms_norm(x[-1], self.final_norm, self.eps) @ self.vocabulary.T

    def generate(self, prompt, count):
        """Yields `count` greedy bytes that follow the prompt's bytes, with the lead of each over the runner-up."""
        logits = self.step(list(prompt))
        for n in range(count):
            best, second = np.sort(logits)[-1], np.sort(logits)[-2]
            token = int(np.argmax(logits))
            yield token, float(best - second)
            if n + 1 < count:
                logits = self.step([token])
