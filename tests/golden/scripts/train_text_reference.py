"""Trains the recipe of a configuration (configs/gpt_tiny_text.json) in Python PyTorch.

    python tests/golden/scripts/train_text_reference.py [--config C.json] [--text T.txt]
        [--seeds 1,2,3] [--max_steps N] [--device cpu|cuda]

Prints JSON lines: first the settings, then for each seed one line a logged step with its training
loss, and one with the loss over all held-out windows after the last step. Same data split, batch,
model, optimizer, schedule and number of steps as the trainer; the order of samples and the initial
weights come from Python's own generators, so that the seeds show the spread that a correct
implementation may have.
"""
import argparse
import json
import math
import pathlib
import sys
import time

import torch
from torch.nn import functional as F

ROOT = pathlib.Path(__file__).resolve().parents[3]
HELD_OUT_ONE_IN = 10

# Dotted name -> (other spellings, default). Settings of the trainer that decide the numbers.
SETTINGS = {
    "model.name": (("model",), "gpt_tiny"),
    "model.n_layer": ((), 4),
    "model.n_head": ((), 4),
    "model.n_embd": ((), 128),
    "model.n_positions": ((), 128),
    "model.vocab_size": ((), 256),
    "model.dropout": ((), 0.0),
    "data.name": (("dataset", "data"), "text"),
    "data.sequence_length": ((), None),
    "data.max_train_samples": (("max_train_samples",), None),
    "data.max_eval_samples": (("max_eval_samples",), None),
    "batch_size": (("per_device_train_batch_size",), 64),
    "gradient_accumulation_steps": ((), 1),
    "max_steps": ((), None),
    "seed": ((), 42),
    "precision": ((), "fp32"),
    "label_smoothing_factor": ((), 0.0),
    "optimizer.name": (("optim", "optimizer"), "adamw"),
    "optimizer.learning_rate": (("learning_rate", "lr"), 1e-3),
    "optimizer.weight_decay": (("weight_decay",), 0.0),
    "optimizer.adam_beta1": (("adam_beta1",), 0.9),
    "optimizer.adam_beta2": (("adam_beta2",), 0.999),
    "optimizer.adam_epsilon": (("adam_epsilon",), 1e-8),
    "optimizer.max_grad_norm": (("max_grad_norm",), 0.0),
    "schedule.type": (("lr_scheduler_type", "schedule"), "constant"),
    "schedule.warmup_steps": (("warmup_steps",), 0),
    "schedule.min_lr_ratio": (("min_lr_ratio",), 0.0),
    "schedule.total_steps": ((), None),
    "logging_steps": ((), 10),
}
# What the trainer may be told besides, and what changes no number here.
WITHOUT_EFFECT = {
    "output_dir", "save_steps", "save_total_limit", "checkpoint.save_steps",
    "checkpoint.save_total_limit", "eval_steps", "num_workers", "data.num_workers", "device",
    "num_threads", "tensorboard", "deterministic", "log_sample_ids", "overwrite_output_dir",
}
# Values that this script takes; anything else would be another recipe.
ONLY = {
    "model.name": ("gpt_tiny",), "data.name": ("text",), "precision": ("fp32",),
    "optimizer.name": ("adamw", "adamw_torch", "adamw_torch_fused"),
    "schedule.type": ("constant", "constant_with_warmup", "cosine"),
    "model.dropout": (0, 0.0), "gradient_accumulation_steps": (1,),
    "data.max_train_samples": (None,), "data.max_eval_samples": (None,),
}


def without_comments(text):
    """JSON text without // and /* */ comments; quotes are respected."""
    out, i, in_string = [], 0, False
    while i < len(text):
        if in_string:
            step = 2 if text[i] == "\\" else 1
            in_string = text[i] != '"'
            out.append(text[i:i + step])
            i += step
        elif text.startswith("//", i):
            i = text.find("\n", i) if "\n" in text[i:] else len(text)
        elif text.startswith("/*", i):
            i = text.index("*/", i) + 2
        else:
            in_string = text[i] == '"'
            out.append(text[i])
            i += 1
    return "".join(out)


def read_settings(path):
    flat = {}
    for key, value in json.loads(without_comments(path.read_text())).items():
        if isinstance(value, dict):
            flat.update({f"{key}.{inner}": v for inner, v in value.items()})
        else:
            flat[key] = value
    dotted = {spelling: name for name, (others, _) in SETTINGS.items()
              for spelling in (name, *others)}
    settings = {name: default for name, (_, default) in SETTINGS.items()}
    for key, value in flat.items():
        if key in dotted:
            if value is not None:
                settings[dotted[key]] = value
        elif key not in WITHOUT_EFFECT:
            sys.exit(f"{path}: this script does not know {key!r}. Fix: teach it what it means")
    for key, allowed in ONLY.items():
        if settings[key] not in allowed:
            sys.exit(f"{path}: {key} is {settings[key]!r}, this script takes one of {allowed}")
    return settings


class Block(torch.nn.Module):
    """One pre-norm transformer block with its weights as [out, in] (torch.nn.Linear)."""

    def __init__(self, s):
        super().__init__()
        width = s["model.n_embd"]
        self.n_head = s["model.n_head"]
        self.ln_1 = torch.nn.LayerNorm(width, eps=1e-5)
        self.c_attn = torch.nn.Linear(width, 3 * width)
        self.attn_proj = torch.nn.Linear(width, width)
        self.ln_2 = torch.nn.LayerNorm(width, eps=1e-5)
        self.c_fc = torch.nn.Linear(width, 4 * width)
        self.mlp_proj = torch.nn.Linear(4 * width, width)

    def forward(self, x):
        batch, tokens, width = x.shape
        heads = (batch, tokens, self.n_head, width // self.n_head)
        q, k, v = (t.view(heads).transpose(1, 2) for t in self.c_attn(self.ln_1(x)).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.attn_proj(y.transpose(1, 2).reshape(batch, tokens, width))
        return x + self.mlp_proj(F.gelu(self.c_fc(self.ln_2(x)), approximate="tanh"))


class Gpt(torch.nn.Module):
    def __init__(self, s):
        super().__init__()
        self.wte = torch.nn.Embedding(s["model.vocab_size"], s["model.n_embd"])
        self.wpe = torch.nn.Embedding(s["model.n_positions"], s["model.n_embd"])
        self.h = torch.nn.ModuleList(Block(s) for _ in range(s["model.n_layer"]))
        self.ln_f = torch.nn.LayerNorm(s["model.n_embd"], eps=1e-5)
        residual = 0.02 / math.sqrt(2 * s["model.n_layer"])
        for name, parameter in self.named_parameters():
            if name.endswith("bias"):
                torch.nn.init.zeros_(parameter)
            elif parameter.dim() == 2:
                std = residual if name.endswith("proj.weight") else 0.02
                torch.nn.init.normal_(parameter, 0.0, std)

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe.weight[:tokens.shape[1]]
        for block in self.h:
            x = block(x)
        return F.linear(self.ln_f(x), self.wte.weight)


def windows(text, length):
    """[count, length] inputs and next bytes of windows that do not overlap."""
    count = (len(text) - 1) // length
    inputs = text[:count * length].view(count, length)
    return inputs, text[1:count * length + 1].view(count, length)


def learning_rate(s, update, total):
    """For the update after `update` applied ones, as Hugging Face's schedules give it."""
    peak, warmup = s["optimizer.learning_rate"], s["schedule.warmup_steps"]
    if s["schedule.type"] != "constant" and update < warmup:
        return peak * update / warmup
    if s["schedule.type"] != "cosine":
        return peak
    progress = min(max((update - warmup) / max(1, total - warmup), 0.0), 1.0)
    floor = s["schedule.min_lr_ratio"]
    return peak * (floor + (1.0 - floor) * 0.5 * (1.0 + math.cos(math.pi * progress)))


def make_optimizer(s, model):
    """Weight decay for matrices and embeddings only, as in the trainer."""
    groups = [
        {"params": [p for p in model.parameters() if p.dim() >= 2],
         "weight_decay": s["optimizer.weight_decay"]},
        {"params": [p for p in model.parameters() if p.dim() < 2], "weight_decay": 0.0},
    ]
    betas = (s["optimizer.adam_beta1"], s["optimizer.adam_beta2"])
    return torch.optim.AdamW(groups, lr=0.0, betas=betas, eps=s["optimizer.adam_epsilon"])


def sum_loss(model, inputs, targets, smoothing=0.0):
    logits = model(inputs.long())
    return F.cross_entropy(logits.flatten(0, 1), targets.long().flatten(), reduction="sum",
                           label_smoothing=smoothing)


@torch.no_grad()
def mean_loss(model, inputs, targets, batch):
    model.eval()
    total = sum(sum_loss(model, x, y).double()
                for x, y in zip(inputs.split(batch), targets.split(batch)))
    model.train()
    return total.item() / targets.numel()


def train(s, seed, splits, device):
    torch.manual_seed(seed)
    model = Gpt(s).to(device)
    optimizer = make_optimizer(s, model)
    (inputs, targets), held_out = splits
    max_steps, batch = s["max_steps"], s["batch_size"]
    horizon = s["schedule.total_steps"] or max_steps
    start, step, losses = time.monotonic(), 0, []
    while step < max_steps:
        for ids in torch.randperm(len(inputs), device=device).split(batch):
            if step == max_steps:
                break
            loss = sum_loss(model, inputs[ids], targets[ids], s["label_smoothing_factor"])
            loss = loss / targets[ids].numel()
            optimizer.zero_grad()
            loss.backward()
            if s["optimizer.max_grad_norm"] > 0:
                torch.nn.utils.clip_grad_norm_(model.parameters(), s["optimizer.max_grad_norm"])
            for group in optimizer.param_groups:
                group["lr"] = learning_rate(s, step, horizon)
            optimizer.step()
            step += 1
            losses.append(loss.detach())
            if s["logging_steps"] and step % s["logging_steps"] == 0:
                print(json.dumps({"event": "train", "seed": seed, "step": step,
                                  "loss": losses[-1].item()}), flush=True)
    print(json.dumps({
        "event": "eval", "seed": seed, "step": step, "windows": len(held_out[0]),
        "loss": mean_loss(model, *held_out, batch),
        "last_train_losses_mean": torch.stack(losses[-50:]).mean().item(),
        "parameters": sum(p.numel() for p in model.parameters()),
        "seconds": round(time.monotonic() - start, 1),
    }), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--config", type=pathlib.Path, default=ROOT / "configs/gpt_tiny_text.json")
    parser.add_argument("--text", type=pathlib.Path, default=ROOT / "data/samples/text.txt")
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--max_steps", type=int, help="instead of the configuration's; the "
                        "schedule's horizon follows unless it is set there")
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()

    settings = read_settings(arguments.config)
    if arguments.max_steps is not None:
        settings["max_steps"] = arguments.max_steps
    if not settings["max_steps"]:
        sys.exit(f"{arguments.config} sets no max_steps. Fix: --max_steps N")
    length = settings["data.sequence_length"] or settings["model.n_positions"]
    text = torch.frombuffer(bytearray(arguments.text.read_bytes()), dtype=torch.uint8)
    text = text.to(arguments.device)
    split = len(text) - len(text) // HELD_OUT_ONE_IN
    splits = windows(text[:split], length), windows(text[split:], length)
    print(json.dumps({"event": "settings", "torch": torch.__version__, "text_bytes": len(text),
                      "train_windows": len(splits[0][0]), "eval_windows": len(splits[1][0]),
                      **settings}), flush=True)
    for seed in (int(word) for word in arguments.seeds.split(",")):
        train(settings, seed, splits, arguments.device)


if __name__ == "__main__":
    main()
