"""The image models that the goldens come from: torchvision's, and what torchvision lacks, written
against the papers from its building blocks."""
import functools

import torch
import torchvision
from torch import nn
from torch.nn import functional as F
from torchvision.models.resnet import BasicBlock

VIT_SIZES = {  # Dosovitskiy et al. 2021, table 1; Touvron et al. 2021, table 1
    "vit_b_16": {"num_heads": 12, "hidden_dim": 768, "mlp_dim": 3072},
    "vit_s_16": {"num_heads": 6, "hidden_dim": 384, "mlp_dim": 1536},
    "vit_ti_16": {"num_heads": 3, "hidden_dim": 192, "mlp_dim": 768},
}
DEFAULT_SIZES = {"lenet5": (28, 10), "resnet20_cifar": (32, 10), "resnet56_cifar": (32, 10)}
IMAGENET_SIZES = (224, 1000)


class LeNet5(nn.Module):
    """LeCun et al. 1998, sec. II.B, on 28 x 28 images with a border of 2."""

    def __init__(self, num_classes=10):
        super().__init__()
        self.c1 = nn.Conv2d(1, 6, 5, padding=2)
        self.c3 = nn.Conv2d(6, 16, 5)
        self.c5 = nn.Conv2d(16, 120, 5)
        self.f6 = nn.Linear(120, 84)
        self.output = nn.Linear(84, num_classes)

    def forward(self, x):
        x = F.avg_pool2d(self.c1(x).tanh(), 2)
        x = F.avg_pool2d(self.c3(x).tanh(), 2)
        return self.output(self.f6(self.c5(x).tanh().flatten(1)).tanh())


class ZeroPadding(nn.Module):
    """He et al. 2016, sec. 3.3, option A: every second place, zeros for the new channels."""

    def __init__(self, stride, new_channels):
        super().__init__()
        self.stride = stride
        self.new_channels = new_channels

    def forward(self, x):
        return F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, 0, self.new_channels))


class CifarResNet(nn.Module):
    """He et al. 2016, sec. 4.2: 6 n + 2 layers."""

    def __init__(self, n, num_classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        channels = 16
        for stage, width in enumerate((16, 32, 64)):
            blocks = []
            for block in range(n):
                stride = 2 if stage > 0 and block == 0 else 1
                shortcut = None if width == channels else ZeroPadding(stride, width - channels)
                blocks.append(BasicBlock(channels, width, stride, shortcut))
                channels = width
            setattr(self, f"layer{stage + 1}", nn.Sequential(*blocks))
        self.fc = nn.Linear(64, num_classes)

    def forward(self, x):
        x = self.bn1(self.conv1(x)).relu()
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.fc(x.mean((2, 3)))


def default_sizes(name):
    return DEFAULT_SIZES.get(name, IMAGENET_SIZES)


def make(name, image_size=None, num_classes=None):
    """The model with every dropout off."""
    default_side, default_classes = default_sizes(name)
    side = image_size or default_side
    classes = num_classes or default_classes
    makers = {
        "lenet5": LeNet5,
        "resnet20_cifar": functools.partial(CifarResNet, 3),
        "resnet56_cifar": functools.partial(CifarResNet, 9),
    }
    if name in makers:
        return makers[name](num_classes=classes)
    if name in VIT_SIZES:
        return torchvision.models.VisionTransformer(
            image_size=side, patch_size=16, num_layers=12, num_classes=classes, **VIT_SIZES[name])
    has_dropout = name.startswith("vgg") or name == "mobilenet_v2"
    extra = {"dropout": 0.0} if has_dropout else {}
    return getattr(torchvision.models, name)(num_classes=classes, **extra)


NAMES = ("lenet5", "vgg16", "vgg16_bn", "resnet18", "resnet34", "resnet50", "resnet20_cifar",
         "resnet56_cifar", "mobilenet_v2", "vit_b_16", "vit_s_16", "vit_ti_16")
