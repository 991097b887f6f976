#!/usr/bin/env python3
"""Whether the trainers take what a dataset or a run's folder holds for them, as far as can be told without a GPU.

    python3 check.py FOLDER BASE [TRAINER...] [--environments ENVIRONMENTS]

FOLDER is a dataset's folder (with `formats/`) or one that the scale-out wrote; BASE a small model of the same family, with weights.
Each trainer wants versions of its own, so each has an environment: `ENVIRONMENTS/TRAINER/bin/python`. Without `--environments`
the running Python is asked for every trainer that it has. For each trainer one line says accepted, refused or not tried, and why.
Exits with 1 if one refused.
"""

import argparse
import collections
import importlib.metadata
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

IGNORED = -100
TRAINERS = {  # the package, and the configuration in the trainer's folder
    "axolotl": ("axolotl", "axolotl.yaml"),
    "trl": ("trl", "sft.yaml"),
    "unsloth": ("unsloth", "train.py"),
    "llama-factory": ("llamafactory", "train.yaml"),
    "mlx": ("mlx-lm", "lora.yaml"),
}


class Refused(Exception):
    pass


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("base", type=Path)
    parser.add_argument("trainers", nargs="*", metavar="TRAINER", choices=[*TRAINERS, []])
    parser.add_argument("--environments", type=Path)
    arguments = parser.parse_args()
    folder, base = arguments.folder.resolve(), arguments.base.resolve()
    verdicts = []
    for trainer in arguments.trainers or TRAINERS:
        if arguments.environments:
            python = arguments.environments.resolve() / trainer / "bin/python"
            verdicts.append(elsewhere(python, folder, base, trainer))
        else:
            verdicts.append(verdict(trainer, folder, base))
        print(f"{trainer}: {verdicts[-1]}", flush=True)
    sys.exit(any(line.startswith("refused") for line in verdicts))


def elsewhere(python, folder, base, trainer):
    if not python.exists():
        return "not tried: no environment for it"
    # What they do not know of themselves: that nothing can be downloaded, and nobody is to be told.
    offline = {"HF_HUB_OFFLINE": "1", "AXOLOTL_DO_NOT_TRACK": "1", "CUDA_VISIBLE_DEVICES": "", "TOKENIZERS_PARALLELISM": "false"}
    done = subprocess.run([python, __file__, folder, base, trainer], env={**os.environ, **offline},
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith(f"{trainer}: ")]
    return lines[-1].removeprefix(f"{trainer}: ") if lines else f"refused: {(done.stderr.strip() or '?').splitlines()[-1]}"


def verdict(trainer, folder, base):
    package, configuration = TRAINERS[trainer]
    try:
        version = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return f"not tried: {package} is not installed"
    home = folder / "formats" / trainer if (folder / "formats").is_dir() else folder
    if not (home / configuration).exists():
        return "not tried: the folder has nothing for it"
    came_from = os.getcwd()
    try:
        os.chdir(home)
        with tempfile.TemporaryDirectory() as out:
            told = CHECKS[trainer](configuration, base, Path(out))
        return f"accepted by {package} {version}: {told}"
    except Refused as why:
        return f"refused by {package} {version}: {why}"
    except (Exception, SystemExit) as error:  # whatever a trainer raises is its refusal
        return f"refused by {package} {version}: {type(error).__name__}: {' '.join(str(error).split())[:600]}"
    finally:
        os.chdir(came_from)


def check_axolotl(configuration, base, out):
    import torch
    from axolotl.cli.config import load_cfg
    from axolotl.common.datasets import load_datasets
    from axolotl.utils.config import validate_config
    from axolotl.utils.dict import DictDefault
    from axolotl.utils.schemas.config import AxolotlInputConfig

    settings = read_yaml(configuration)
    refuse_unknown(settings, AxolotlInputConfig.model_fields)
    on_cpu = {**settings, "base_model": str(base), "output_dir": str(out), "dataset_prepared_path": str(out / "prepared")}
    # The whole of it as on machines with GPUs; then what loads rows, without DeepSpeed, which would start here.
    gpus = {"bf16": True, "fp8": False, "tf32": True, "n_gpu": 8, "compute_capability": "sm_90"}
    validate_config(DictDefault(on_cpu), capabilities=gpus, env_capabilities={"torch_version": torch.__version__.split("+")[0]})
    on_cpu.pop("deepspeed", None)
    (out / "axolotl.yaml").write_text(json.dumps(on_cpu))
    loaded = load_cfg(str(out / "axolotl.yaml"), dataset_num_proc=1)
    changed = [name for name in ("lora_r", "lora_alpha", "learning_rate", "num_epochs", "gradient_accumulation_steps")
               if loaded[name] != settings[name]]
    if changed:
        raise Refused(f"changes {changed}")
    data = load_datasets(cfg=loaded)
    for split, rows in (("train", data.train_dataset), ("validation", data.eval_dataset)):
        same(lines(f"tokens/{split}.jsonl"), rows, "labels")
    return f"schema, {len(data.train_dataset)} rows, tokens and labels unchanged; {shared(settings)}"


def check_trl(configuration, base, out):
    from datasets import load_dataset
    from trl import SFTTrainer, get_peft_config
    from trl.scripts.sft import make_parser

    settings = read_yaml(configuration)
    on_cpu = {**settings, "model_name_or_path": str(base), "bf16": False, "use_cpu": True, "output_dir": str(out),
              "max_steps": 1, "gradient_accumulation_steps": 1, "per_device_train_batch_size": 1, "eval_strategy": "no"}
    on_cpu.pop("deepspeed", None)  # needs GPUs; `shared` looks at the file
    (out / "sft.yaml").write_text(json.dumps(on_cpu))
    script, training, model, _mixture = make_parser().parse_args_and_config(["--config", str(out / "sft.yaml")])
    data = load_dataset(script.dataset_name)
    trainer = SFTTrainer(model=model.model_name_or_path, args=training, train_dataset=data["train"],
                         eval_dataset=data[script.dataset_test_split], peft_config=get_peft_config(model))
    for split, rows in (("train", trainer.train_dataset), ("validation", trainer.eval_dataset)):
        expected = lines(f"data/{split}.jsonl")
        for row in expected:
            row["labels"] = [token if mask else IGNORED for token, mask in zip(row["input_ids"], row["completion_mask"])]
        same(expected, rows, "labels")
    trainer.train()
    trainer.save_model(str(out))
    adapter = read_adapter(out)
    if (adapter["r"], adapter["lora_alpha"]) != (settings["lora_r"], settings["lora_alpha"]):
        raise Refused("the adapter has another rank or alpha")
    rows = len(trainer.train_dataset)
    return f"settings, {rows} rows, labels as audited, one step, an adapter of PEFT; {shared(settings)}"


def check_unsloth(script, base, out):
    """Its import wants a GPU: the names and arguments are looked up in its source, and the rest of the script runs without it."""
    import ast

    tree = ast.parse(Path(script).read_text())
    source = Path(importlib.util.find_spec("unsloth").origin).parent / "models"
    known = {"from_pretrained": arguments_of(source / "loader.py", "FastLanguageModel", "from_pretrained"),
             "get_peft_model": arguments_of(source / "llama.py", "FastLlamaModel", "get_peft_model")}
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        if getattr(call.func, "attr", None) in known:
            unknown = {keyword.arg for keyword in call.keywords} - known[call.func.attr]
            if unknown:
                raise Refused(f"{call.func.attr} does not know {sorted(unknown)}")
    stand_in = type(sys)("unsloth")
    stand_in.FastLanguageModel = StandIn
    sys.modules["unsloth"] = stand_in
    text = Path(script).read_text().replace("bf16=True", "use_cpu=True, max_steps=1").replace('"out', f'"{out}/out')
    StandIn.base = str(base)
    exec(compile(text, script, "exec"), {"__name__": "__main__"})
    read_adapter(out / "out/adapter")
    return "names and arguments are in its source; the script trained a step and wrote an adapter with PEFT in place of unsloth"


class StandIn:
    """What unsloth's class does, by transformers and PEFT."""

    @classmethod
    def from_pretrained(cls, _base, max_seq_length, load_in_4bit):
        from transformers import AutoModelForCausalLM, AutoTokenizer

        return AutoModelForCausalLM.from_pretrained(cls.base), AutoTokenizer.from_pretrained(cls.base)

    @staticmethod
    def get_peft_model(model, use_gradient_checkpointing, random_state, **lora):
        from peft import LoraConfig, get_peft_model

        return get_peft_model(model, LoraConfig(task_type="CAUSAL_LM", **lora))


def check_llama_factory(configuration, base, out):
    from llamafactory.data import get_dataset, get_template_and_fix_tokenizer
    from llamafactory.hparams import get_train_args
    from llamafactory.model import load_tokenizer

    settings = read_yaml(configuration)
    on_cpu = {**settings, "model_name_or_path": str(base), "bf16": False, "use_cpu": True, "output_dir": str(out)}
    on_cpu.pop("deepspeed", None)  # needs GPUs; `shared` looks at the file
    model, data, training, _finetuning, _generating = get_train_args(on_cpu)
    module = load_tokenizer(model)
    template = get_template_and_fix_tokenizer(module["tokenizer"], data)
    rows = get_dataset(template, model, data, training, stage="sft", **module)
    made = [(row["input_ids"], next(at for at, label in enumerate(row["labels"]) if label != IGNORED))
            for row in rows["train_dataset"]]
    return f"settings, {len(made)} rows; {against_audited(made, module['tokenizer'])}; {shared(settings)}"


def check_mlx(configuration, base, out):
    from mlx_lm import lora
    from mlx_lm.tuner.datasets import load_dataset
    from mlx_lm.utils import load

    settings = read_yaml(configuration)
    refuse_unknown(settings, lora.CONFIG_DEFAULTS)
    run = argparse.Namespace(**{**lora.CONFIG_DEFAULTS, **settings, "model": str(base), "adapter_path": str(out), "val_batches": 1,
                                "iters": 1, "grad_accumulation_steps": 1})
    _model, tokenizer = load(str(base))
    train, validation, _test = load_dataset(run, tokenizer)
    made = [train.process(train[at]) for at in range(len(train))]
    lora.run(run)
    told = f"settings, {len(made)} rows, one update; {against_audited(made, tokenizer)}"
    return told + (f"; {convert_to_peft(base, out)}" if Path("to_peft.py").exists() else "")


def convert_to_peft(base, out):
    """The run's own script, and the same logits from PEFT as from mlx-lm. One update changes little: B is set to what is seen."""
    import mlx.core as mx
    import torch
    from mlx_lm.utils import load
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    file = str(out / "adapters.safetensors")
    mx.random.seed(1)
    tensors = {name: mx.random.normal(tensor.shape) * 0.3 for name, tensor in mx.load(file).items()}
    mx.save_safetensors(file, tensors)
    script = Path("to_peft.py").read_text().replace('Path("out")', f"Path({str(out)!r})")
    exec(compile(script, "to_peft.py", "exec"), {})
    ids = [[151644, 872, 198, 9707, 151645, 198]]
    model, _tokenizer = load(str(base), adapter_path=str(out))
    theirs = torch.tensor(model(mx.array(ids)).astype(mx.float32).tolist())
    plain = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    with torch.no_grad():
        without = plain(torch.tensor(ids)).logits
        ours = PeftModel.from_pretrained(plain, str(out / "peft"))(torch.tensor(ids)).logits
    difference, effect = (ours - theirs).abs().max().item(), (ours - without).abs().max().item()
    if difference > 1e-3 or effect < 0.1:
        raise Refused(f"logits differ by {difference:.1e} after to_peft.py, where the adapter changes them by {effect:.1e}")
    return f"to_peft.py: logits of PEFT within {difference:.0e} of mlx-lm's, where the adapter changes them by {effect:.1f}"


CHECKS = {"axolotl": check_axolotl, "trl": check_trl, "unsloth": check_unsloth, "llama-factory": check_llama_factory, "mlx": check_mlx}


def against_audited(made, tokenizer):
    """Trainers that render by themselves, against the tokens that were audited: where those are there."""
    file = Path("../axolotl/tokens/train.jsonl")
    if not file.exists():
        return "not compared with the audited tokens, which are not in this folder"
    audited = {}
    for row in lines(file):
        labels = [*row["labels"], IGNORED]
        for end in range(1, len(labels)):
            if labels[end] == IGNORED and labels[end - 1] != IGNORED:
                start = max((at + 1 for at in range(end) if labels[at] == IGNORED), default=0)
                audited[tuple(row["input_ids"][:end])] = start
    line_break = tokenizer.encode("\n", add_special_tokens=False)[0]
    same_tokens, shifts = 0, collections.Counter()
    for ids, start in made:
        ids = list(ids)[:-1] if list(ids)[-1] == line_break else list(ids)
        if tuple(ids) in audited:
            same_tokens += 1
            shifts[audited[tuple(ids)] - start] += 1
    earlier = ", ".join(f"{shift} tokens earlier in {count}" if shift else f"at the same token in {count}" for shift, count in sorted(shifts.items()))
    return f"{same_tokens} of {len(made)} have the audited tokens, a line break behind them; loss begins {earlier}"


def read_yaml(path):
    import yaml

    return yaml.safe_load(Path(path).read_text())


def refuse_unknown(settings, known):
    unknown = sorted(set(settings) - set(known))
    if unknown:
        raise Refused(f"does not know {unknown}")


def lines(path):
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def same(expected, rows, labels):
    """Whether a trainer's rows are the file's, in whatever order."""
    key = lambda row: (tuple(row["input_ids"]), tuple(row[labels]))  # noqa: E731
    if collections.Counter(map(key, expected)) != collections.Counter(map(key, rows)):
        raise Refused("the rows are not those of the file")


def arguments_of(file, owner, function):
    import ast

    found = next(node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.ClassDef) and node.name == owner)
    method = next(node for node in found.body if isinstance(node, ast.FunctionDef) and node.name == function)
    return {argument.arg for argument in [*method.args.args, *method.args.kwonlyargs]}


def read_adapter(folder):
    config = json.loads((folder / "adapter_config.json").read_text())
    if config["peft_type"] != "LORA" or not (folder / "adapter_model.safetensors").exists():
        raise Refused(f"`{folder}` holds no LoRA adapter of PEFT")
    return config


def shared(settings):
    """How the work is shared, after a look at the file that says so."""
    if Path("accelerate.yaml").exists():
        from accelerate.commands.config.config_args import load_config_from_file
        from accelerate.commands.launch import _validate_launch_command, launch_command_parser

        load_config_from_file("accelerate.yaml")  # refuses what it does not know
        launch = launch_command_parser().parse_args(["--config_file", "accelerate.yaml", "train.py"])
        known = set(vars(launch))
        refuse_unknown(read_yaml("accelerate.yaml")["fsdp_config"], known)
        _validate_launch_command(launch)
        return "accelerate.yaml accepted"
    if settings.get("deepspeed"):
        return f"deepspeed.json accepted{read_deepspeed(settings['deepspeed'])}"
    return "fsdp block accepted" if settings.get("fsdp_config") else "nothing shared but rows"


def read_deepspeed(path):
    """As transformers fills it, then as DeepSpeed itself reads it, where that is installed."""
    if importlib.util.find_spec("deepspeed") is None:
        json.loads(Path(path).read_text())
        return " as JSON, for deepspeed is not installed"
    import deepspeed
    from deepspeed.runtime.config import DeepSpeedConfig
    from transformers import PretrainedConfig, TrainingArguments
    from transformers.integrations.deepspeed import HfTrainerDeepSpeedConfig

    filled = HfTrainerDeepSpeedConfig(path)
    arguments = TrainingArguments(output_dir="out", use_cpu=True)
    filled.trainer_config_process(arguments)
    filled.trainer_config_finalize(arguments, argparse.Namespace(config=PretrainedConfig(hidden_size=64)), 10)
    DeepSpeedConfig(filled.config)
    return f" by deepspeed {deepspeed.__version__}"


if __name__ == "__main__":
    main()
