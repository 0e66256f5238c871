"""Records tests/golden/*.json from PyTorch and Hugging Face transformers, in float64 on the CPU.

    python tests/golden/scripts/record_models.py

Needs torch and transformers (versions: tests/golden/PROVENANCE.md). Run it again only with a line
in the changelog that says why the numbers may move.
"""
import json
import pathlib

import torch
from torch.nn import functional as F
from transformers import GPT2Config, GPT2LMHeadModel

from mnist_example import Net
from reference_values import fill_parameters, gradient_record, hex_list, uniform

GOLDEN = pathlib.Path(__file__).resolve().parent.parent

GPT_SMALL = {"n_layer": 2, "n_head": 4, "n_embd": 32, "n_positions": 12, "vocab_size": 19}
GPT_FAMILY = {
    "gpt_tiny": {"n_layer": 4, "n_head": 4, "n_embd": 128, "n_positions": 128, "vocab_size": 256},
    "gpt2": {"n_layer": 12, "n_head": 12, "n_embd": 768},
    "gpt2_medium": {"n_layer": 24, "n_head": 16, "n_embd": 1024},
    "gpt2_large": {"n_layer": 36, "n_head": 20, "n_embd": 1280},
    "gpt2_xl": {"n_layer": 48, "n_head": 25, "n_embd": 1600},
}


def gpt(sizes, attention="eager"):
    config = GPT2Config(**sizes, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
                        attn_implementation=attention)
    return GPT2LMHeadModel(config)


def shapes(module):
    return [{"name": n, "shape": list(p.shape)} for n, p in module.named_parameters()]


def record_gpt_small():
    model = gpt(GPT_SMALL).double().train()
    fill_parameters(model, 0.25)
    batch, tokens_each = 2, 9
    flat = torch.arange(batch * tokens_each)
    ids = ((7 * flat + 3 * flat * flat) % GPT_SMALL["vocab_size"]).reshape(batch, tokens_each)
    targets = ((5 * flat + 2) % GPT_SMALL["vocab_size"])
    targets[flat % 4 == 3] = -100
    logits = model(ids).logits
    loss = F.cross_entropy(logits.reshape(-1, GPT_SMALL["vocab_size"]), targets, reduction="sum",
                           label_smoothing=0.1)
    loss.backward()
    return {
        "sizes": GPT_SMALL, "parameter_scale": 0.25, "label_smoothing": 0.1,
        "input_shape": [batch, tokens_each], "ids": ids.flatten().tolist(),
        "targets": targets.tolist(), "logits": hex_list(logits), "loss_sum": loss.item().hex(),
        "gradients": gradient_record(model),
    }


def record_mnist_cnn():
    model = Net(0.0, 0.0).double().train()
    fill_parameters(model, 0.125)
    images = uniform(5000, (3, 1, 28, 28)) * 4.0
    targets = torch.tensor([3, 9, 0])
    logits = model(images)
    loss = F.cross_entropy(logits, targets, reduction="sum")
    loss.backward()
    return {
        "parameter_scale": 0.125, "label_smoothing": 0.0, "input_shape": list(images.shape),
        "input_stream": 5000, "input_scale": 4.0, "targets": targets.tolist(),
        "logits": hex_list(logits), "loss_sum": loss.item().hex(),
        "gradients": gradient_record(model),
    }


def record_parameters():
    lists = {"mnist_cnn": shapes(Net())}
    with torch.device("meta"):
        for name, sizes in GPT_FAMILY.items():
            lists[name] = shapes(gpt(sizes))
    count = {name: sum(torch.Size(p["shape"]).numel() for p in parameters)
             for name, parameters in lists.items()}
    # The deeper models repeat the names of gpt2's blocks: their counts and ends are enough.
    for name in ("gpt2_medium", "gpt2_large", "gpt2_xl"):
        lists[name] = lists[name][:14] + lists[name][-14:]
    return {"count": count, "parameters": lists}


def record_mnist_initial_weights():
    torch.manual_seed(42)
    return {"seed": 42, "parameters": [
        {"name": n, "first": hex_list(p.flatten()[:4]), "sum": p.double().sum().item().hex()}
        for n, p in Net().named_parameters()]}


def main():
    records = {
        "gpt2_small": record_gpt_small(),
        "mnist_cnn": record_mnist_cnn(),
        "parameters": record_parameters(),
        "mnist_cnn_initial_weights": record_mnist_initial_weights(),
    }
    for name, record in records.items():
        path = GOLDEN / f"{name}.json"
        path.write_text(json.dumps(record, indent=1) + "\n")
        print(path.name, path.stat().st_size)


if __name__ == "__main__":
    main()
