"""Numbers that both sides compute alike: weights, inputs and probes of the golden tests.

tests/models/reference.cpp holds the same formulas in C++.
"""
import math

import numpy as np
import torch

MASK = (1 << 64) - 1


def uniform(stream, shape):
    """Doubles in [-0.5, 0.5) of 24 bits: splitmix64 (Steele et al. 2014) of 2^32 stream + i."""
    count = math.prod(shape)
    with np.errstate(over="ignore"):
        z = np.arange(count, dtype=np.uint64) + np.uint64((stream << 32) & MASK)
        z = (z + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    values = (z >> np.uint64(40)).astype(np.float64) / 2.0**24 - 0.5
    return torch.from_numpy(values.reshape(shape))


def fill_parameters(module, scale):
    """Parameter number k, in order of registration, gets scale * uniform(k); layer norm weights
    get 1 on top."""
    with torch.no_grad():
        for stream, (name, parameter) in enumerate(module.named_parameters()):
            values = scale * uniform(stream, tuple(parameter.shape))
            if name.endswith(("ln_1.weight", "ln_2.weight", "ln_f.weight")):
                values = values + 1.0
            parameter.copy_(values)


def hex_list(tensor):
    return [float(v).hex() for v in tensor.detach().double().flatten()]


def gradient_record(module):
    """Norm and two projections on fixed directions, a parameter: any wrong element moves them."""
    records = []
    for stream, (name, parameter) in enumerate(module.named_parameters()):
        gradient = parameter.grad.double()
        probes = [uniform(1000 * (k + 1) + stream, tuple(gradient.shape)) for k in range(2)]
        records.append({
            "name": name,
            "norm": float(gradient.norm()).hex(),
            "projections": [float((gradient * p).sum()).hex() for p in probes],
        })
    return records


def fill_by_fan_in(module):
    """Parameter number k, in order of registration, gets uniform(k) of variance 2 / fan_in where it
    has two or more dimensions (fan_in: elements of weight[0]), else a tenth of uniform(k), plus 1
    for norm weights: activations keep their size through deep networks."""
    with torch.no_grad():
        for stream, (name, parameter) in enumerate(module.named_parameters()):
            fan_in = math.prod(parameter.shape[1:])
            scale = math.sqrt(24.0 / fan_in) if parameter.dim() > 1 else 0.1
            values = scale * uniform(stream, tuple(parameter.shape))
            if parameter.dim() == 1 and name.endswith("weight"):
                values = values + 1.0
            parameter.copy_(values)
