#!/usr/bin/env python3
"""Computes with PyTorch, transformers and PEFT what `finetune/tests/reference.rs` holds our own model against.

    pip install torch transformers peft safetensors numpy
    python3 make.py make

writes qwen2, qwen2-bf16, qwen3 and qwen3-rslora beside this file. Their numbers are drawn anew each time, from the same seeds.

    python3 make.py check BASE ADAPTER MERGED LOGITS

is the other direction: it loads an adapter and a merged model that we wrote, and compares what they compute with LOGITS, a safetensors
file with our `base`, `adapter` and `merged`. It fails if they differ by more than LOGITS_WITHIN and WEIGHTS_WITHIN.
"""

import json
import os
import platform
import shutil
import sys

import numpy
import peft
import safetensors
import torch
import transformers
from safetensors.torch import load_file, save_file

HERE = os.path.dirname(os.path.abspath(__file__))
LOGITS_WITHIN = 1e-4
WEIGHTS_WITHIN = 1e-6
MAPS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]

# The first is marked as learnt: nothing predicts it, so it must not count.
IDS = [7, 3, 26, 41, 41, 12, 1, 0, 63, 23, 58, 58, 7, 31, 13, 2, 20, 19, 50, 6]
LEARNT = [True, False, False, True, True, False, True, False, False, True, True, True, False, False, True, False, True, True, True, True]

SHAPE = {
    "vocab_size": 64, "hidden_size": 32, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 128, "use_cache": False, "bos_token_id": None, "eos_token_id": None,
    "rope_parameters": {"rope_type": "default", "rope_theta": 1e6},
}


def qwen2():
    config = transformers.Qwen2Config(**SHAPE, tie_word_embeddings=False, rms_norm_eps=1e-6)
    return drawn(transformers.Qwen2ForCausalLM, config, 1)


def qwen3():
    # A head is not as wide as hidden_size / num_attention_heads.
    config = transformers.Qwen3Config(**SHAPE, head_dim=16, tie_word_embeddings=True, rms_norm_eps=1e-5)
    return drawn(transformers.Qwen3ForCausalLM, config, 2)


def drawn(kind, config, seed):
    """A model whose numbers are so far apart that a wrong one shows: as they are initialised, all logits are nearly nothing."""
    generator = torch.Generator().manual_seed(seed)
    model = kind(config)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            spread = 0.5 if "embed_tokens" in name or "lm_head" in name else 0.2
            around = 1.0 if name.endswith("norm.weight") else 0.0
            weight.copy_(around + spread * torch.randn(weight.shape, generator=generator))
    return model.eval()


def adapted(model, config, seed):
    """With an A and a B that are not zero."""
    generator = torch.Generator().manual_seed(seed)
    adapter = peft.get_peft_model(model, config).eval()
    with torch.no_grad():
        for _, weight in lora(adapter):
            weight.copy_(0.2 * torch.randn(weight.shape, generator=generator))
    return adapter


def lora(adapter):
    return [(name, weight) for name, weight in adapter.named_parameters() if ".lora_" in name]


def load(folder, dtype):
    return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, attn_implementation="eager").eval()


def logits(model):
    with torch.no_grad():
        return model(torch.tensor([IDS])).logits[0].float().contiguous()


def maps(model):
    """The weights that an adapter can change, by their names."""
    return {name: weight for name, weight in model.state_dict().items() if any(name.endswith(f"{m}.weight") for m in MAPS)}


def expected(base, adapter, dtype, modules=MAPS, with_gradients=True):
    """Logits, loss, gradients and merged weights of two folders. All but the merged weights are computed in f32."""
    found = {"logits.base": logits(load(base, torch.float32))}
    model = peft.PeftModel.from_pretrained(load(base, torch.float32), adapter, is_trainable=True).eval()
    found["logits.adapter"] = logits(model)
    if with_gradients:
        labels = [token if learnt else -100 for token, learnt in zip(IDS, LEARNT)]
        loss = model(torch.tensor([IDS]), labels=torch.tensor([labels])).loss
        loss.backward()
        found["loss"] = loss.detach().reshape(1)
        for name, weight in lora(model):
            found["gradient." + name.replace(".default", "")] = weight.grad
    merged = peft.PeftModel.from_pretrained(load(base, dtype), adapter).merge_and_unload()
    for name, weight in maps(merged).items():
        if any(f".{module}." in name for module in modules):
            found[f"weight.{name}"] = weight.contiguous()
    found["logits.merged"] = logits(merged.float())
    return {name: tensor.detach().clone() for name, tensor in found.items()}


def config_of(modules, rank, **more):
    return peft.LoraConfig(task_type="CAUSAL_LM", r=rank, lora_alpha=8, target_modules=modules, **more)


def fresh(name):
    folder = os.path.join(HERE, name)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    return folder


def save_adapter(adapter, folder):
    # It would ask a server for the base otherwise, to see whether its vocabulary grew.
    adapter.save_pretrained(folder, save_embedding_layers=False)
    # A page about the model that says nothing here.
    os.remove(os.path.join(folder, "README.md"))
    # PEFT keeps the modules as a set, in another order each time, and the path of the base.
    path = os.path.join(folder, "adapter_config.json")
    with open(path) as file:
        config = json.load(file)
    write_json(path, {**config, "target_modules": sorted(config["target_modules"]), "base_model_name_or_path": "base"})


def write_json(path, value):
    with open(path, "w") as file:
        json.dump(value, file, indent=2)
        file.write("\n")


def make():
    for name, model, seed in (("qwen2", qwen2(), 11), ("qwen3", qwen3(), 12)):
        folder = fresh(name)
        base, adapter = os.path.join(folder, "base"), os.path.join(folder, "adapter")
        model.save_pretrained(base)
        save_adapter(adapted(model, config_of(MAPS, 4), seed), adapter)
        save_file(expected(base, adapter, torch.float32), os.path.join(folder, "expected.safetensors"))

    # The same base in bf16 with the same adapter.
    folder, adapter = fresh("qwen2-bf16"), os.path.join(HERE, "qwen2", "adapter")
    base = os.path.join(folder, "base")
    load(os.path.join(HERE, "qwen2", "base"), torch.bfloat16).save_pretrained(base)
    save_file(expected(base, adapter, torch.bfloat16), os.path.join(folder, "expected.safetensors"))

    # Two of the maps, scaled by alpha over the root of the rank, with the adapter's name left in the names.
    folder, base = fresh("qwen3-rslora"), os.path.join(HERE, "qwen3", "base")
    adapter, modules = os.path.join(folder, "adapter"), ["k_proj", "down_proj"]
    model = adapted(load(base, torch.float32), config_of(modules, 3, use_rslora=True), 13)
    save_adapter(model, adapter)
    found = expected(base, adapter, torch.float32, modules, with_gradients=False)
    del found["logits.base"]
    save_file(found, os.path.join(folder, "expected.safetensors"))
    named = {name: weight.detach().contiguous() for name, weight in lora(model)}
    assert all(".default.weight" in name for name in named)
    save_file(named, os.path.join(adapter, "adapter_model.safetensors"))

    write_json(os.path.join(HERE, "tokens.json"), {"ids": IDS, "learnt": LEARNT})
    packages = {module.__name__: module.__version__ for module in (torch, transformers, peft, safetensors, numpy)}
    write_json(os.path.join(HERE, "versions.json"), {"python": platform.python_version(), **packages})


def greatest(pairs):
    return max(float((a.double() - b.double()).abs().max()) for a, b in pairs)


def check(base, adapter, merged, ours):
    ours = load_file(ours)
    model = peft.PeftModel.from_pretrained(load(base, torch.float32), adapter).eval()
    loaded = lora(model)
    assert all(float(weight.abs().max()) > 0 for _, weight in loaded), "PEFT left a tensor as it draws it"
    stored = load_file(os.path.join(adapter, "adapter_model.safetensors"))
    assert {name.replace(".default", "") for name, _ in loaded} == set(stored), "PEFT has other tensors than we wrote"
    with_adapter = logits(model)
    theirs = load(merged, torch.float32)
    without = logits(load(base, torch.float32))
    differences = {
        "logits of the base": greatest([(without, ours["base"])]),
        "logits with the adapter": greatest([(with_adapter, ours["adapter"])]),
        "logits of the merged model": greatest([(logits(theirs), ours["merged"])]),
        "logits of the merged model and with the adapter": greatest([(logits(theirs), with_adapter)]),
    }
    weights = theirs.state_dict()
    by_peft = model.merge_and_unload().state_dict()
    assert set(weights) == set(by_peft)
    weights_apart = greatest([(weight, weights[name]) for name, weight in by_peft.items()])
    print(f"{len(loaded)} tensors loaded; the adapter moves logits by {greatest([(without, with_adapter)]):.2f}, "
          f"the greatest is {float(without.abs().max()):.1f}")
    for what, difference in differences.items():
        print(f"{what}: {difference:.1e}")
    print(f"merged weights, PEFT's and ours: {weights_apart:.1e}")
    if max(differences.values()) > LOGITS_WITHIN or weights_apart > WEIGHTS_WITHIN:
        sys.exit("they differ by more than they may")


if __name__ == "__main__":
    if sys.argv[1:] == ["make"]:
        make()
    elif len(sys.argv) == 6 and sys.argv[1] == "check":
        check(*sys.argv[2:])
    else:
        sys.exit(__doc__)
