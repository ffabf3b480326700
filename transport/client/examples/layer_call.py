"""Opens a tier and runs one step through all its MoE layers: layer_call.py ADDRESS."""
import sys

import numpy as np

import moetier

# [example: open]
with moetier.connect(sys.argv[1]) as tier, tier.session(max_tokens=256) as session:
    model = tier.model
    x = np.sin(0.37 * np.arange(5 * model.hidden_size)).astype(np.float32).reshape(5, -1)
    logits = np.cos(1.7 * np.arange(5 * model.router_columns)).astype(np.float32).reshape(5, -1)
    with session.step() as step:
        for layer in model.moe_layers:
            y = step.forward(layer=layer, hidden=x, logits=logits)
# [end]
    print(f"{step.report.calls} layers, sum {np.abs(y).sum(dtype=np.float64):.6g}")
