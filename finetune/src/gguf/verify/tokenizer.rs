//! A tokenizer made of what a GGUF holds, against the one of the folder: the same ids for the same texts, or the model reads other words
//! than it was trained on.

use std::path::Path;

use tokenizers::models::bpe::{BPE, Vocab};
use tokenizers::normalizers::NFC;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::{AddedToken, PreTokenizerWrapper, SplitDelimiterBehavior, Tokenizer};

use super::Outcome;
use crate::dataset::render::Tokens;
use crate::gguf::vocabulary::{QWEN2_SPLIT, TokenType};
use crate::gguf::{Gguf, GgufError, Value};

/// What agents read and write, and what tokenizers stumble over.
const CORPUS: [&str; 22] = [
    "",
    " ",
    "Hello, world! It's what they'VE said: I'll, you'd, we're.",
    "fn main() -> anyhow::Result<()> {\n    let x: Vec<u8> = vec![0xff; 1 << 10];\n    Ok(())\n}\n",
    "def f(self, *args, **kwargs):\n\treturn {k: v for k, v in kwargs.items() if not k.startswith('_')}\n",
    "SELECT id, count(*) FROM \"sessions\" WHERE started_at >= now() - interval '7 days' GROUP BY 1;",
    r#"{"name": "Read", "arguments": {"file_path": "/srv/code/widgets/src/main.rs", "limit": 200, "deep": [1.5, null]}}"#,
    r#"<tool_call>{"name":"Bash","arguments":{"command":"grep -rn 'TODO' --include=*.rs . | head -n 20"}}</tool_call>"#,
    "<|im_start|>system\nYou are a coding agent.<|im_end|>\n<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n",
    "<|im_start|>user\n<tool_response>\nok\n</tool_response><|im_end|><|endoftext|><think>\n\n</think>\n\n",
    "<tool_call>\n{\"name\": \"Edit\"}\n</tool_call><tool_call >< tool_call><|im_end |><|fim_prefix|>x",
    "C:\\Users\\Public\\a b\\c.txt ../../etc/hosts ~/.config/x.toml https://example.com/a?b=c&d=%20#e",
    "Grüße aus Köln: Äpfel, Öl, Übermut, Straße; naïve café, señor, Łódź, ﬁn",
    "cafe\u{301} u\u{308}ber n\u{303} \u{1100}\u{1161} Å \u{212b}",
    "日本語のテキストと中文混排，全角　スペース。한국어도 있습니다. ไทย العربية עברית हिन्दी",
    "🦀 👍🏽 👩‍👩‍👧‍👦 🏳️‍🌈 1️⃣ 🚀🚀🚀 ✅ 😶\u{200d}🌫️",
    "3 33 333 3333 33333 3.14159 1e-9 0xdeadbeef 1_000_000 v1.2.3-rc.4+build.5 ½ ² ٣",
    "a  b   c    d\t\te \t f\n\n\n\ng\r\n\r\nh   \n   i\u{a0}\u{2003}j                                                  k",
    "\n \n\n \n\n\n \t \t\t \t\n  \n   \n    \n     \n",
    "------======= ''''''```````\"\"\"\"......!!!!!!?????? @@ -1,3 +1,4 @@ <<<<<<< HEAD",
    "error[E0382]: borrow of moved value: `x`\n --> src/a.rs:3:5\n  |\n3 |     x\n  |     ^ value borrowed here after move",
    "\u{0}\u{7}\u{1b}[31mred\u{1b}[0m \u{feff}bom \u{200b}zero \u{202e}right \u{fffd}",
];

pub(super) fn agrees(gguf: &Gguf, folder: &Path) -> Result<Outcome, GgufError> {
    let refused = |reason: String| GgufError::Tokenizer { folder: folder.to_owned(), reason };
    let path = folder.join("tokenizer.json");
    let json = std::fs::read(&path).map_err(|source| GgufError::Unreadable { path, source })?;
    let expected = Tokens::of(&json).map_err(|error| refused(error.to_string()))?;
    let found = match of_gguf(gguf) {
        Ok(found) => found,
        Err(why) => return Ok(Err(why)),
    };
    let mut count = 0;
    for text in CORPUS {
        let expected = expected.encode(text).map_err(|error| refused(error.to_string()))?.ids;
        let found = match found.encode(text, false) {
            Ok(found) => found.get_ids().to_vec(),
            Err(error) => return Ok(Err(format!("{text:?} cannot be tokenised: {error}"))),
        };
        if found != expected {
            let at = found.iter().zip(&expected).take_while(|(one, other)| one == other).count();
            let (found, expected) = (found.get(at), expected.get(at));
            return Ok(Err(format!("{text:?} has {found:?} as token {at}; the folder's tokenizer says {expected:?}")));
        }
        count += expected.len();
    }
    Ok(Ok(format!("{} texts of {count} tokens, the folder's own ids", CORPUS.len())))
}

fn of_gguf(gguf: &Gguf) -> Result<Tokenizer, String> {
    let text = |key: &str| gguf.of_tokenizer(key).and_then(Value::as_str).unwrap_or("nothing");
    let (model, pre) = (text("model"), text("pre"));
    if (model, pre) != ("gpt2", "qwen2") {
        return Err(format!("a tokenizer of {model} that cuts as {pre}; gpt2 and qwen2 are expected"));
    }
    let tokens = gguf.texts("tokens").ok_or("no tokens")?;
    let types = gguf.of_tokenizer("token_type").and_then(Value::as_array).ok_or("no token_type")?;
    let merges = gguf.texts("merges").ok_or("no merges")?;
    let pairs = merges.iter().map(|merge| {
        let (left, right) = merge.split_once(' ').ok_or_else(|| format!("the merge {merge:?} is no pair"))?;
        Ok::<_, String>((left.to_owned(), right.to_owned()))
    });
    let pairs = pairs.collect::<Result<Vec<_>, _>>()?;
    let is = |id: usize, kind: TokenType| types.get(id).and_then(Value::as_u64) == Some(kind as u64);
    let words = tokens.iter().enumerate().filter(|(id, _)| !is(*id, TokenType::Unused));
    let words: Vocab = words.map(|(id, token)| ((*token).to_owned(), id as u32)).collect();
    let model = BPE::builder().vocab_and_merges(words, pairs).build();
    let mut tokenizer = Tokenizer::new(model.map_err(|error| error.to_string())?);
    let split = Split::new(SplitPattern::Regex(QWEN2_SPLIT.into()), SplitDelimiterBehavior::Isolated, false);
    let split = split.map_err(|error| error.to_string())?;
    let bytes = ByteLevel::new(false, false, false);
    let cuts = vec![PreTokenizerWrapper::Split(split), PreTokenizerWrapper::ByteLevel(bytes)];
    tokenizer.with_normalizer(Some(NFC)).map_err(|error| error.to_string())?;
    tokenizer.with_pre_tokenizer(Some(Sequence::new(cuts)));
    let of_kind = |kind| tokens.iter().enumerate().filter(move |(id, _)| is(*id, kind)).map(|(_, token)| *token);
    let control = of_kind(TokenType::Control).map(|token| AddedToken::from(token, true));
    let added = of_kind(TokenType::UserDefined).map(|token| AddedToken::from(token, false).normalized(false));
    tokenizer.add_special_tokens(control).map_err(|error| error.to_string())?;
    tokenizer.add_tokens(added).map_err(|error| error.to_string())?;
    Ok(tokenizer)
}
