"""Makes a tiny Mixtral at random with the transformers library: tiny_mixtral.py DIR. Beside the checkpoint it writes
DIR.vectors.safetensors: rows, router logits and the output of each MoE layer, as the library computes them."""
import pathlib
import sys

import safetensors.torch
import torch
import transformers

folder = pathlib.Path(sys.argv[1])
torch.manual_seed(0)
config = transformers.MixtralConfig(hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_local_experts=8,
                                    num_experts_per_tok=2, num_attention_heads=4, num_key_value_heads=2,
                                    vocab_size=256, initializer_range=0.1)
model = transformers.MixtralForCausalLM(config).eval()
model.save_pretrained(folder)

vectors = {}
for number, layer in enumerate(model.model.layers):
    hidden = torch.randn(1, 16, config.hidden_size)
    with torch.no_grad():
        output = layer.mlp(hidden)
        logits = hidden[0] @ layer.mlp.gate.weight.T
    vectors |= {f"layer{number}.{name}": tensor.contiguous() for name, tensor in
                (("hidden", hidden[0]), ("logits", logits), ("output", output[0]))}
safetensors.torch.save_file(vectors, folder.parent / f"{folder.name}.vectors.safetensors")
print(f"{folder}: {sum(p.numel() for p in model.parameters())} parameters")
