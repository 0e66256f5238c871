"""Writes tests/golden/python_0_8_0.safetensors: every dtype of checkpoints/FORMAT.md, as Python
writes it. Usage: python record_safetensors.py OUTPUT"""
import sys

import safetensors
import safetensors.torch
import torch

assert safetensors.__version__ == "0.8.0"
DTYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
          "I64": torch.int64, "I32": torch.int32, "I16": torch.int16, "I8": torch.int8,
          "U8": torch.uint8, "BOOL": torch.bool}


def counted(dtype):
    """Element i encodes i: i + 0.5 for floats, i for integers, i % 2 for bools."""
    numbers = torch.arange(6).reshape(2, 3)
    if dtype == torch.bool:
        return numbers % 2 == 1
    return (numbers + 0.5).to(dtype) if dtype.is_floating_point else numbers.to(dtype)


tensors = {"t/" + name: counted(dtype) for name, dtype in DTYPES.items()}
tensors["empty"] = torch.empty(0, 4)
with open(sys.argv[1], "wb") as output:
    output.write(safetensors.torch.save(tensors, {"written_by": "safetensors 0.8.0"}))
