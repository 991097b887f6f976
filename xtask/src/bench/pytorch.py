"""The reference of `cargo xtask bench train`: the same steps with PyTorch, transformers and PEFT, with gradient checkpointing.

Usage: pytorch.py BASE TOKENS STEPS THREADS PRECISION, which is float32 or bfloat16. Prints one line of JSON.
"""

import json
import resource
import sys
import time

import peft
import torch
import transformers

base, tokens, steps, threads = sys.argv[1], *map(int, sys.argv[2:5])
precision = getattr(torch, sys.argv[5])
torch.set_num_threads(threads)
torch.manual_seed(0)
model = transformers.AutoModelForCausalLM.from_pretrained(base, dtype=precision, attn_implementation="sdpa", use_cache=False)
model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
model.enable_input_require_grads()
modules = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
tuned = peft.get_peft_model(model, peft.LoraConfig(r=16, lora_alpha=32, target_modules=modules, task_type="CAUSAL_LM"))
tuned.train()
optimizer = torch.optim.AdamW([p for p in tuned.parameters() if p.requires_grad], lr=1e-4)

ids = torch.tensor([[at * 7919 % 150000 for at in range(tokens)]])
learnt = torch.tensor([at for at in range(1, tokens) if at % 4 == 0])
timed = []
for _ in range(steps):
    start = time.time()
    # The head of the learnt positions only, as here.
    hidden = tuned.base_model.model.model(input_ids=ids)[0][0][learnt - 1]
    loss = torch.nn.functional.cross_entropy(model.lm_head(hidden).float(), ids[0][learnt])
    loss.backward()
    torch.nn.utils.clip_grad_norm_(tuned.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    timed.append({"loss": loss.item(), "seconds": time.time() - start})
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
versions = {"torch": torch.__version__, "transformers": transformers.__version__, "peft": peft.__version__}
print(json.dumps({"tokens": tokens, "steps": timed, "peak_bytes": peak, "versions": versions}))
