# python train.py, in this folder; the adapter that it writes is in PEFT's format.
from unsloth import FastLanguageModel  # before transformers, which it patches
from datasets import load_dataset
from transformers import DataCollatorForSeq2Seq, Trainer, TrainingArguments

BASE = {{base}}
model, tokenizer = FastLanguageModel.from_pretrained(BASE, max_seq_length={{max_tokens}}, load_in_4bit=False)
model = FastLanguageModel.get_peft_model(
    model,
    r={{r}},
    lora_alpha={{alpha}},
    lora_dropout={{dropout}},
    bias="none",
    target_modules=["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"],
    use_gradient_checkpointing="unsloth",
    random_state={{seed}},
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
        per_device_train_batch_size={{rows_at_once}},
        per_device_eval_batch_size=1,
        gradient_accumulation_steps={{accumulation}},
        num_train_epochs={{epochs}},
        learning_rate={{learning_rate}},
        lr_scheduler_type="cosine",
        warmup_steps={{warmup_updates}},
        bf16=True,
        eval_strategy="epoch",
        save_strategy="epoch",
        report_to="none",
        seed={{seed}},
    ),
)
trainer.train()
model.save_pretrained("out/adapter")
tokenizer.save_pretrained("out/adapter")
