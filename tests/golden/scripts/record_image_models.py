"""Records tests/golden/image_models.json and image_parameters.json from torchvision and PyTorch, in
float64 on the CPU.

    python tests/golden/scripts/record_image_models.py

Needs torch and torchvision (versions: tests/golden/PROVENANCE.md). Run it again only with a line in
the changelog that says why the numbers may move.
"""
import json
import pathlib

import torch
from torch.nn import functional as F

import image_models
from reference_values import fill_by_fan_in, gradient_record, hex_list, uniform

GOLDEN = pathlib.Path(__file__).resolve().parent.parent
CLASSES = 7
BATCH = 3
INPUT_STREAM = 5000
# Small, and large enough that the last map keeps more than one place; VGG pools any map to 7 x 7.
SIDES = {"lenet5": 28, "resnet20_cifar": 16, "resnet56_cifar": 16, "vgg16": 32, "vgg16_bn": 64,
         "vit_b_16": 32, "vit_s_16": 48, "vit_ti_16": 64}
DEFAULT_SIDE = 64


def buffer_record(model):
    return [{"name": name, "norm": float(buffer.double().norm()).hex()}
            for name, buffer in model.named_buffers()]


def record(name):
    side = SIDES.get(name, DEFAULT_SIDE)
    model = image_models.make(name, side, CLASSES).double().train()
    fill_by_fan_in(model)
    channels = 1 if name == "lenet5" else 3
    images = uniform(INPUT_STREAM, (BATCH, channels, side, side)) * 4.0
    targets = torch.tensor([3, 6, 0])
    logits = model(images)
    loss = F.cross_entropy(logits, targets, reduction="sum")
    loss.backward()
    model.eval()
    with torch.no_grad():
        evaluated = model(images)
    return {
        "image_size": side, "batch": BATCH, "num_classes": CLASSES, "input_stream": INPUT_STREAM,
        "targets": targets.tolist(), "logits": hex_list(logits), "loss_sum": loss.item().hex(),
        "evaluation_logits": hex_list(evaluated), "gradients": gradient_record(model),
        "buffers": buffer_record(model),
    }


def shape_text(tensor):
    return "x".join(str(size) for size in tensor.shape) or "scalar"


def shapes(name):
    with torch.device("meta"):
        model = image_models.make(name)
    side, classes = image_models.default_sizes(name)
    return {
        "image_size": side, "num_classes": classes,
        "count": sum(p.numel() for p in model.parameters()),
        "parameters": [f"{n} {shape_text(p)}" for n, p in model.named_parameters()],
        "buffers": [f"{n} {shape_text(b)}" for n, b in model.named_buffers()],
    }


def write(name, records):
    """One line a model."""
    path = GOLDEN / f"{name}.json"
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in records.items()]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(path.name, path.stat().st_size)


def main():
    torch.set_num_threads(2)
    write("image_parameters", {name: shapes(name) for name in image_models.NAMES})
    write("image_models", {name: record(name) for name in image_models.NAMES})


if __name__ == "__main__":
    main()
