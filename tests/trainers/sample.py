#!/usr/bin/env python3
"""Makes a small dataset folder in the form that `cargo xtask train dataset` writes, for trying trainers without a journal.

    python3 sample.py BASE FOLDER

BASE holds `tokenizer.json` and `tokenizer_config.json` of Qwen3 or Qwen2.5. The conversations are those of ../chat-template; the
rows are tokenised by Hugging Face's own code. Beside them, in `base`, is a model of two layers with random weights. There is no
manifest: the folder is for check.py and for nothing else.
"""

import json
import re
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
TEMPLATES = HERE.parent.parent / "finetune/src/dataset/formats"
END = "<|im_end|>"
MAX_TOKENS = 2048


def main():
    from transformers import PreTrainedTokenizerFast

    base, out = Path(sys.argv[1]), Path(sys.argv[2])
    settings = json.loads((base / "tokenizer_config.json").read_text())
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(base / "tokenizer.json"))
    hybrid = "enable_thinking" in settings["chat_template"]

    def render(messages, tools, asks):
        return tokenizer.apply_chat_template(
            messages, tools=tools or None, chat_template=settings["chat_template"], tokenize=False,
            add_generation_prompt=asks, enable_thinking=False)

    rows = [row for row in map(row_of, json.loads((HERE.parent / "chat-template/conversations.json").read_text())) if row]
    files = {}
    for number, row in enumerate(rows):
        is_train = number % 5 != 4
        for path, lines in forms(row, samples(row, render, tokenizer)).items():
            split = "train" if is_train else "valid" if path == "mlx" else "validation"
            files.setdefault(f"{path}/{split}.jsonl", []).extend(lines)
    for path, lines in files.items():
        write(out / "formats" / path, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
    configurations(out, hybrid)
    tiny_base(base, out / "base", hybrid)
    print(f"wrote {len(rows)} rows to {out}")


def row_of(conversation):
    """What hooks tell: one call a message, no words beside it; a row ends with the assistant and offers tools."""
    messages, tools = conversation["messages"], conversation["tools"]
    trained = [index for index, message in enumerate(messages) if message["role"] == "assistant"]
    calls = [message.get("tool_calls", []) for message in messages]
    if not trained or not tools or messages[0]["role"] != "system":
        return None
    if any(len(call) > 1 or (call and messages[at]["content"]) for at, call in enumerate(calls)):
        return None
    messages = messages[: trained[-1] + 1]
    # The first answer of a longer conversation carries no loss, so that a trainer has something to mask.
    return {"messages": messages, "tools": tools, "trained": trained[1:] if len(trained) > 2 else trained}


def samples(row, render, tokenizer):
    """As `finetune/src/dataset/render/samples.rs`: one rendering where it is what a server sends, else one a trained turn."""
    messages, tools, trained = row["messages"], row["tools"], row["trained"]
    text = render(messages, tools, False)
    asked = [render(messages[:index], tools, True) for index in trained]
    if all(text.startswith(prefix) for prefix in asked):
        spans = [(len(prefix), text.index(END, len(prefix)) + len(END)) for prefix in asked]
        return [tokens(text, spans, tokenizer)]
    made = []
    for index, prefix in zip(trained, asked):
        text = render(messages[: index + 1], tools, False)
        assert text.startswith(prefix)
        end = text.index(END, len(prefix)) + len(END)
        made.append(tokens(text[:end], [(len(prefix), end)], tokenizer))
    return made


def tokens(text, spans, tokenizer):
    encoded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    carries = [any(start <= a and b <= end for start, end in spans) for a, b in encoded["offset_mapping"]]
    return encoded["input_ids"], carries


def forms(row, made):
    """As `finetune/src/dataset/formats/mod.rs`."""
    labelled = [{"input_ids": ids, "attention_mask": [1] * len(ids),
                 "labels": [token if carries else -100 for token, carries in zip(ids, mask)]} for ids, mask in made]
    masked = [{"input_ids": ids, "completion_mask": [int(carries) for carries in mask]} for ids, mask in made]
    as_texts = json.loads(json.dumps(row["messages"]))
    for index, message in enumerate(as_texts):
        message["training"] = index in row["trained"]
        for call in message.get("tool_calls", []):
            call["function"]["arguments"] = json.dumps(call["function"]["arguments"], ensure_ascii=False)
    tools = [tool["function"] for tool in row["tools"]]
    turns = [row["messages"][: index + 1] for index in row["trained"]]
    shared = [{"conversations": [share(message) for message in turn if message["role"] != "system"],
               "system": turn[0]["content"], "tools": json.dumps(tools, ensure_ascii=False)} for turn in turns]
    return {
        "axolotl": [{"messages": as_texts, "tools": json.dumps(row["tools"], ensure_ascii=False)}],
        "axolotl/tokens": labelled,
        "trl/data": masked,
        "unsloth": labelled,
        "llama-factory": shared,
        "mlx": [{"messages": turn, "tools": row["tools"]} for turn in turns],
    }


def share(message):
    if message.get("tool_calls"):
        function = message["tool_calls"][0]["function"]
        return {"from": "function_call", "value": json.dumps(function, ensure_ascii=False)}
    role = {"user": "human", "tool": "observation", "assistant": "gpt"}[message["role"]]
    return {"from": role, "value": message["content"]}


def configurations(out, hybrid):
    values = {
        "base": json.dumps("Qwen/Qwen3-0.6B" if hybrid else "Qwen/Qwen2.5-0.5B-Instruct"),
        "template": "qwen3\nenable_thinking: false" if hybrid else "qwen",
        "max_tokens": MAX_TOKENS, "r": 16, "alpha": 32, "scale": 2.0, "dropout": 0.0, "learning_rate": 0.0001, "epochs": 3,
        "rows_at_once": 1, "accumulation": 8, "updates": 14, "warmup_updates": 1, "iterations": 112, "seed": 7,
    }
    source = (TEMPLATES / "configuration.rs").read_text()
    for path, name in re.findall(r'path: "formats/([^"]+)",[^}]*?include_str!\("([^"]+)"\)', source):
        text = (TEMPLATES / name).read_text()
        for key, value in values.items():
            text = text.replace("{{" + key + "}}", str(value))
        write(out / "formats" / path, text)


def tiny_base(base, out, hybrid):
    """Two layers of random weights under the real tokenizer."""
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM, Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(0)
    shape = {"vocab_size": 151936, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
             "num_attention_heads": 4, "num_key_value_heads": 2, "tie_word_embeddings": True, "eos_token_id": 151645}
    config = Qwen3Config(head_dim=32, **shape) if hybrid else Qwen2Config(**shape)
    (Qwen3ForCausalLM if hybrid else Qwen2ForCausalLM)(config).save_pretrained(out)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(base / name, out / name)


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


if __name__ == "__main__":
    main()
