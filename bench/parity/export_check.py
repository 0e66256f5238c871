"""Trains a few steps, exports the checkpoint, and loads it in Python: torchvision's names strictly, and
a Hugging Face folder with from_pretrained; then brings Python's weights into Assay and back.

    python bench/parity/export_check.py --build build

Needs torch, torchvision, transformers and safetensors. Ends with 1 if something differs.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import torch
from safetensors.torch import load_file, save_file

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/golden/scripts"))

import image_models  # noqa: E402

IMAGE_MODELS = ("resnet18", "mobilenet_v2", "vit_ti_16", "vgg16_bn")
CLASSES = 10
SIDE = 32


def run(*words):
    result = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if result.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, words))}\n{result.stdout}{result.stderr}")


def train(build, name, folder, *settings):
    run(build / "bin/assay-train", "train", "--model", name, "--dataset", "synthetic",
        "--max_steps", "2", "--batch_size", "4", "--device", "cpu", "--max_eval_samples", "4", "--output_dir", folder,
        *settings)


def same(left, right):
    return left.keys() == right.keys() and all(torch.equal(left[k], right[k]) for k in left)


def check_image_model(build, name, folder):
    sizes = (f"model.image_size={SIDE}", f"model.num_classes={CLASSES}")
    train(build, name, folder / "run", *sizes)
    exported = folder / "exported.safetensors"
    run(build / "bin/assay", "checkpoint", "export", folder / "run", "--format", "torchvision",
        "--output", exported)
    model = image_models.make(name, SIDE, CLASSES)
    model.load_state_dict(load_file(exported), strict=True)
    # The other way, through import. Two steps with a learning rate of almost nothing move a weight by
    # at most 2e-30 and its rounding.
    theirs = image_models.make(name, SIDE, CLASSES)
    save_file(theirs.state_dict(), folder / "theirs.safetensors")
    start = folder / "start.safetensors"
    run(build / "bin/assay", "checkpoint", "import", folder / "theirs.safetensors", "--output",
        start)
    is_kept = same(load_file(start), dict(theirs.state_dict()))
    train(build, name, folder / "from_theirs", *sizes, f"model.init_from={start}",
          "--learning_rate", "1e-30")
    weights = load_file(folder / "from_theirs/checkpoint-2/model.safetensors")
    parameters = {n: p.detach() for n, p in theirs.named_parameters()}
    return is_kept and all((weights[n] - parameters[n]).abs().max() <= 4e-30 for n in parameters)


def check_gpt(build, folder):
    from transformers import GPT2LMHeadModel
    train(build, "gpt_tiny", folder / "run", "data.sequence_length=16")
    exported = folder / "exported"
    run(build / "bin/assay", "checkpoint", "export", folder / "run", "--format", "hf", "--output",
        exported)
    model, info = GPT2LMHeadModel.from_pretrained(exported, output_loading_info=True)
    is_whole = (not info["unexpected_keys"] and not info["mismatched_keys"]
                and set(info["missing_keys"]) <= {"lm_head.weight"})
    model.save_pretrained(folder / "theirs")
    start = folder / "start.safetensors"
    run(build / "bin/assay", "checkpoint", "import", folder / "theirs", "--output", start)
    checkpoint = load_file(folder / "run/checkpoint-2/model.safetensors")
    return is_whole and model.config.n_head == 4 and same(load_file(start), checkpoint)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=str(ROOT / "build"), type=pathlib.Path)
    args = parser.parse_args()
    verdicts = {}
    for name in IMAGE_MODELS + ("gpt_tiny",):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder)
            verdicts[name] = (check_gpt(args.build, path) if name == "gpt_tiny"
                              else check_image_model(args.build, name, path))
        print(json.dumps({"model": name, "interchange_holds": verdicts[name]}), flush=True)
    return 0 if all(verdicts.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
