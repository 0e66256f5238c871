"""Compares Assay's models with Python's on one batch: logits, loss, every gradient, running
statistics, logits of evaluation, and the weights after some steps of each optimizer.

    cmake --build build --target bench_parity
    python bench/parity/parity.py --program build/bin/bench_parity [--models a,b] [--device cuda]

Needs torch, torchvision, transformers and safetensors. Prints a JSON line a comparison; ends with 1
if one is out of bounds.

The bound. Two evaluations in float32 differ by at most the sum of their errors. How far float32
arithmetic is off for a tensor, norm-wise, is measured: Python's own float32 result against its
float64 result, e. The difference of Assay's and Python's float32 results may be 4 e: each side
errs by about e in another direction, and twice that for another order of sums. In float64 unit
roundoff is 2^29 times smaller, and so is e. A floor of 8 unit roundoffs stands where e is 0.
"""
import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile

import torch
from safetensors.torch import load_file
from torch.nn import functional as F

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/golden/scripts"))

import image_models  # noqa: E402
from mnist_example import Net  # noqa: E402

GPT_SIZES = {
    "gpt_tiny": {"n_layer": 4, "n_head": 4, "n_embd": 128, "n_positions": 128, "vocab_size": 256},
    "gpt2": {"n_layer": 12, "n_head": 12, "n_embd": 768},
    "gpt2_medium": {"n_layer": 24, "n_head": 16, "n_embd": 1024},
    "gpt2_large": {"n_layer": 36, "n_head": 20, "n_embd": 1280},
    "gpt2_xl": {"n_layer": 48, "n_head": 25, "n_embd": 1600},
}
MODELS = ("mnist_cnn",) + image_models.NAMES + ("gpt_tiny", "gpt2")
LEARNING_RATE = 1e-3
# Far above the usual 1e-8: Adam turns a gradient that is rounding alone (a bias before another
# batch norm) into a step of full size in either direction, which no bound can hold.
ADAM_EPSILON = 1e-4
MARGIN = 4.0
FLOOR = 8.0
UNIT_ROUNDOFF = {"fp32": 2.0**-24, "fp64": 2.0**-53}
# In float32, relative to which e is measured; float64 errs 2^29 times less.
SHRINK = {"fp32": 1.0, "fp64": 2.0**-29}


def reference_model(name, image_size):
    if name == "mnist_cnn":
        return Net(0.0, 0.0)
    if name in GPT_SIZES:
        from transformers import GPT2Config, GPT2LMHeadModel
        config = GPT2Config(**GPT_SIZES[name], resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
                            attn_implementation="sdpa")
        return GPT2LMHeadModel(config)
    return image_models.make(name, image_size)


def load_weights(model, weights):
    """Strict, but for an output layer that is tied to the token table."""
    missing, unexpected = model.load_state_dict(weights, strict=False)
    if unexpected or [name for name in missing if name != "lm_head.weight"]:
        raise SystemExit(f"names differ: missing {missing}, unexpected {unexpected}")
    if "lm_head.weight" in missing:
        model.tie_weights()


def make_optimizer(name, model):
    decayed = [p for p in model.parameters() if p.dim() > 1]
    rest = [p for p in model.parameters() if p.dim() <= 1]
    groups = [{"params": decayed, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}]
    if name == "sgd":
        return torch.optim.SGD(groups, lr=LEARNING_RATE, momentum=0.9)
    kind = torch.optim.Adam if name == "adam" else torch.optim.AdamW
    return kind(groups, lr=LEARNING_RATE, eps=ADAM_EPSILON)


def reference_step(model, optimizer, dump, dtype, device, steps):
    """What bench_parity writes, under the same names."""
    prefix = "before/"
    model = model.to(device=device, dtype=dtype).train()
    load_weights(model, {name[len(prefix):]: value for name, value in dump.items()
                         if name.startswith(prefix)})
    update = make_optimizer(optimizer, model)
    features, targets = dump["features"].to(device), dump["targets"].to(device)
    features = features if features.dtype == torch.int64 else features.to(dtype)
    result = {}

    def forward():
        output = model(features)
        return output if torch.is_tensor(output) else output.logits

    for done in range(steps + 1):
        update.zero_grad()
        logits = forward()
        loss = F.cross_entropy(logits.reshape(-1, logits.shape[-1]), targets)
        loss.backward()
        if done == 0:
            result["logits"], result["loss"] = logits.detach().clone(), loss.detach().clone()
            for name, parameter in model.named_parameters():
                result[f"gradient/{name}"] = parameter.grad.clone()
        if done < steps:
            update.step()
    if steps:
        for name, parameter in model.named_parameters():
            result[f"after/{name}"] = parameter.detach().clone()
    for name, buffer in model.named_buffers():
        if f"after/{name}" in dump:
            result[f"after/{name}"] = buffer.clone()
    model.eval()
    with torch.no_grad():
        result["evaluation_logits"] = forward()
    return {name: value.cpu() for name, value in result.items()}


def whole_norm(tensors):
    """Norm of all gradients together."""
    return torch.stack([value.double().norm() for name, value in tensors.items()
                        if name.startswith("gradient/")]).norm()


def relative_error(actual, expected, origin, smallest):
    """||actual - expected|| / ||expected||; of weights after some steps: of how far they went. A
    gradient counts as at least `smallest`: that of a bias before another batch norm sums to nothing
    but rounding."""
    actual, expected = actual.double(), expected.double()
    size = (expected - origin.double() if origin is not None else expected).norm()
    size = max(size, smallest)
    error = (actual - expected).norm()
    return 0.0 if error == 0 else float(error / size) if size > 0 else float("inf")


def compare(dump, python, python32, python64, precision):
    """(largest ratio of error to bound, its tensor, largest error)"""
    worst = (0.0, "", 0.0)
    share = whole_norm(python) / 1024
    for name in python:
        smallest = share if name.startswith("gradient/") else 0.0
        origin = dump.get("before/" + name[len("after/"):]) if name.startswith("after/") else None
        if not python[name].is_floating_point():
            if not torch.equal(dump[name], python[name]):
                return (float("inf"), name, float("inf"))
            continue
        own_error = relative_error(python32[name], python64[name], origin, smallest)
        bound = max(MARGIN * own_error * SHRINK[precision], FLOOR * UNIT_ROUNDOFF[precision])
        error = relative_error(dump[name], python[name], origin, smallest)
        if not math.isfinite(error):
            return (float("inf"), name, error)
        worst = max(worst, (error / bound, name, error))
    return worst


def run_program(program, name, precision, optimizer, args, path):
    command = [program, path, str(args.steps), "--model", name, "--optim", optimizer,
               "--weight_decay", "0.1", "--learning_rate", str(LEARNING_RATE),
               "--adam_epsilon", str(ADAM_EPSILON), "--dataset", "synthetic",
               "--device", args.device, "--precision", precision,
               f"--batch_size={args.batch}"]
    if name in GPT_SIZES:
        command.append("data.sequence_length=64")
    elif name not in ("mnist_cnn", "lenet5"):
        command.append(f"model.image_size={args.image_size}")
    subprocess.run(command, check=True)
    return load_file(path)


def check(name, optimizer, args):
    is_out = False
    with tempfile.TemporaryDirectory() as folder:
        dumps = {p: run_program(args.program, name, p, optimizer, args, f"{folder}/{p}.safetensors")
                 for p in args.precisions}
    runs = {}
    first = dumps[args.precisions[0]]
    for precision, dtype in (("fp32", torch.float32), ("fp64", torch.float64)):
        device = args.device if precision == "fp32" else "cpu"
        runs[precision] = reference_step(reference_model(name, args.image_size), optimizer,
                                         dumps.get(precision, first), dtype, device, args.steps)
    # Weights are drawn in float32 and turned into float64: both start from the same numbers.
    for precision in args.precisions:
        ratio, tensor, error = compare(dumps[precision], runs[precision], runs["fp32"],
                                       runs["fp64"], precision)
        print(json.dumps({"model": name, "precision": precision, "optimizer": optimizer,
                          "steps": args.steps, "device": args.device, "worst_tensor": tensor,
                          "error": error, "error_over_bound": round(ratio, 4),
                          "within": ratio <= 1.0}), flush=True)
        is_out = is_out or not ratio <= 1.0
    return is_out


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(ROOT / "build/bin/bench_parity"))
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--optimizers", default="sgd")
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--precisions", default="fp32,fp64")
    parser.add_argument("--image-size", type=int, default=64)
    parser.add_argument("--batch", type=int, default=4)
    args = parser.parse_args()
    args.precisions = args.precisions.split(",")
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_tf32 = False
    is_out = False
    for name in args.models.split(","):
        for optimizer in args.optimizers.split(","):
            is_out = check(name, optimizer, args) or is_out
    return 1 if is_out else 0


if __name__ == "__main__":
    sys.exit(main())
