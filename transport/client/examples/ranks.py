"""An attention service of several ranks, each a process of its own: ranks.py ADDRESS [RANKS]."""
import multiprocessing
import sys

import numpy as np

import moetier


# [example: rank]
def run_rank(address, rank, steps):
    """A rank opens its own session when it likes; it waits for no other rank, and none waits for it."""
    with moetier.connect(address, tenant="chat") as tier, tier.session(max_tokens=64) as session:
        model = tier.model
        tokens = rank * 3  # rank 0 is idle: it sends nothing, and costs nothing
        x = np.ones((tokens, model.hidden_size), np.float32)
        logits = np.tile(np.arange(model.router_columns, dtype=np.float32), (tokens, 1))
        for _ in range(steps):
            with session.step() as step:
                for layer in model.moe_layers:
                    x = step.forward(layer, x, logits)
        return rank, session.stats.tokens
# [end]


if __name__ == "__main__":
    ranks = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    # A process that has opened a service is not forked: its handles are no good in the child.
    with multiprocessing.get_context("spawn").Pool(ranks) as pool:
        for rank, tokens in pool.starmap(run_rank, [(sys.argv[1], rank, 2) for rank in range(ranks)]):
            print(f"rank {rank}: {tokens} tokens")
