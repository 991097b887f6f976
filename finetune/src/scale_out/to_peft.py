# python to_peft.py, in this folder, after training: writes mlx-lm's adapter in PEFT's form to out/peft.
# mlx-lm adds scale * (x @ a) @ b; PEFT adds (alpha / r) * x @ A.T @ B.T: so A and B are a and b turned, and alpha is scale * r.
import json
from pathlib import Path

import mlx.core as mx

out = Path("out")
settings = json.loads((out / "adapter_config.json").read_text())
lora = settings["lora_parameters"]
names = {"lora_a": "lora_A", "lora_b": "lora_B"}
tensors, modules = {}, set()
for name, tensor in mx.load(str(out / "adapters.safetensors")).items():
    module, _, part = name.rpartition(".")
    if part not in names:
        raise SystemExit(f"error: `{name}` is no part of a LoRA adapter: train with fine_tune_type: lora")
    tensors[f"base_model.model.{module}.{names[part]}.weight"] = mx.contiguous(tensor.T.astype(mx.float32))
    modules.add(module.rpartition(".")[2])
config = {
    "peft_type": "LORA",
    "task_type": "CAUSAL_LM",
    "base_model_name_or_path": settings["model"],
    "r": lora["rank"],
    "lora_alpha": lora["scale"] * lora["rank"],
    "lora_dropout": lora["dropout"],
    "bias": "none",
    "fan_in_fan_out": False,
    "inference_mode": True,
    "target_modules": sorted(modules),
}
folder = out / "peft"
folder.mkdir(exist_ok=True)
mx.save_safetensors(str(folder / "adapter_model.safetensors"), tensors, metadata={"format": "pt"})
(folder / "adapter_config.json").write_text(json.dumps(config, indent=2) + "\n")
print(f"Wrote {len(tensors)} tensors to {folder}")
