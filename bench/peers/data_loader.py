"""Images a second of PyTorch's DataLoader on a folder that bench_data_pipeline made.

    python data_loader.py FOLDER [seconds] [workers ...]

Two pipelines: torchvision's transforms on Pillow images to float tensors, and its v2 transforms on
uint8 tensors. Every number of workers is tried; JSON lines.
"""

import json
import resource
import sys
import time

import torch
from torch.utils.data import DataLoader
from torchvision import datasets, io, transforms
from torchvision.transforms import v2

MEAN, STDDEV = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def read_tensor(path):
    return io.decode_jpeg(io.read_file(path), mode=io.ImageReadMode.RGB)


def pipelines():
    pillow = transforms.Compose([transforms.RandomResizedCrop(224),
                                 transforms.RandomHorizontalFlip(), transforms.ToTensor(),
                                 transforms.Normalize(MEAN, STDDEV)])
    tensor = v2.Compose([v2.RandomResizedCrop(224, antialias=True), v2.RandomHorizontalFlip()])
    return {"pillow_float": (datasets.folder.default_loader, pillow),
            "v2_uint8": (read_tensor, tensor)}


def rate(folder, loader, transform, workers, seconds):
    data = datasets.ImageFolder(folder + "/train", transform, loader=loader)
    batches = DataLoader(data, batch_size=64, shuffle=True, num_workers=workers, drop_last=True,
                         persistent_workers=workers > 0)
    for _ in batches:  # files in the page cache, workers running
        pass
    images, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        for batch, _ in batches:
            images += len(batch)
    return images / (time.perf_counter() - start)


def main():
    torch.set_num_threads(1)
    folder = sys.argv[1]
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 10.0
    for name, (loader, transform) in pipelines().items():
        for workers in [int(word) for word in sys.argv[3:]] or [0, 2]:
            print(json.dumps({
                "bench": name, "workers": workers, "torch": torch.__version__,
                "images_per_second": round(rate(folder, loader, transform, workers, seconds)),
                "peak_memory_mb_of_main": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
                "peak_memory_mb_of_largest_worker":
                    resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024}), flush=True)


if __name__ == "__main__":
    main()
