"""A transformers model whose experts are on a tier that serves its checkpoint: attach.py ADDRESS CHECKPOINT."""
import sys

import torch
import transformers

import moetier
import moetier.transformers

address, checkpoint = sys.argv[1:]
model = transformers.AutoModelForCausalLM.from_pretrained(checkpoint, dtype=torch.float32)
tokens = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6]])
options = {"attention_mask": torch.ones_like(tokens), "max_new_tokens": 12, "do_sample": False, "pad_token_id": 0}
own = model.generate(tokens, **options)

# [example: attach]
with moetier.connect(address) as tier, tier.session(max_tokens=256) as session:
    with moetier.transformers.attach(model, session):  # gates stay here, experts are freed
        there = model.generate(tokens, **options)
# [end]
print("here: ", own[0, 8:].tolist())
print("there:", there[0, 8:].tolist())
sys.exit(0 if torch.equal(own, there) else 1)
