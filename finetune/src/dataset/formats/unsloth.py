# python train.py, in this folder; the adapter that it writes is in PEFT's format.
from unsloth import FastLanguageModel  # before transformers, which it patches
from datasets import load_dataset
from transformers import DataCollatorForSeq2Seq, Trainer, TrainingArguments

BASE = "{{base}}"
model, tokenizer = FastLanguageModel.from_pretrained(BASE, max_seq_length={{max_tokens}}, load_in_4bit=False)
model = FastLanguageModel.get_peft_model(
    model,
    r=16,
    lora_alpha=32,
    lora_dropout=0,
    bias="none",
    target_modules=["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"],
    use_gradient_checkpointing="unsloth",
    random_state=7,
)
# Tokens and labels as they were audited: nothing is rendered again.
data = load_dataset("json", data_files={"train": "train.jsonl", "validation": "validation.jsonl"})
trainer = Trainer(
    model=model,
    train_dataset=data["train"],
    eval_dataset=data["validation"],
    data_collator=DataCollatorForSeq2Seq(tokenizer, padding=True, label_pad_token_id=-100),
    args=TrainingArguments(
        output_dir="out",
        per_device_train_batch_size=2,
        gradient_accumulation_steps=4,
        num_train_epochs=3,
        learning_rate=1e-4,
        lr_scheduler_type="cosine",
        warmup_ratio=0.05,
        bf16=True,
        eval_strategy="epoch",
        save_strategy="epoch",
        seed=7,
    ),
)
trainer.train()
model.save_pretrained("out/adapter")
tokenizer.save_pretrained("out/adapter")
