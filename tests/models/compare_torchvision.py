"""Holds the models against torchvision's, or against definitions below where it has none.

    compare_torchvision.py PATH_TO_model_outputs [MODEL ...]

For each model, both sides fill every tensor with the same values, which follow from its name, and
run the same input in evaluation mode. Fails when a name, a shape or the kind of a tensor differs,
or an output by more than 1e-5 of the largest one.
"""
import math
import pathlib
import subprocess
import sys
import tempfile
import warnings

import numpy
import torch
import torchvision
from torch import nn
from torch.nn import functional as F

TOLERANCE = 1e-5


# --- the same values as model_outputs.cpp ----------------------------------------------------

def hash_of(name):
    value = 2166136261
    for letter in name.encode():
        value = ((value ^ letter) * 16777619) & 0xFFFFFFFF
    return value


def fraction(start, count):
    x = numpy.arange(count, dtype=numpy.uint32)
    x += numpy.uint32(start)
    x ^= x >> numpy.uint32(16)
    x *= numpy.uint32(0x85EBCA6B)
    x ^= x >> numpy.uint32(13)
    x *= numpy.uint32(0xC2B2AE35)
    x ^= x >> numpy.uint32(16)
    return (x >> numpy.uint32(8)).astype(numpy.float64) / 16777216.0


def fill(name, tensor):
    low, width = -0.1, 0.2
    if tensor.dim() > 1:
        low = -math.sqrt(6.0 / (tensor.numel() // tensor.shape[0]))
        width = -2.0 * low
    elif name.endswith(("weight", "running_var")):
        low, width = 0.5, 1.0
    values = (low + width * fraction(hash_of(name), tensor.numel())).astype(numpy.float32)
    tensor.copy_(torch.from_numpy(values).view(tensor.shape))


# --- networks that torchvision has not -------------------------------------------------------

class CifarBlock(nn.Module):
    def __init__(self, cin, planes, stride, bottleneck):
        super().__init__()
        if bottleneck:
            cout = 4 * planes
            shapes = [(cin, planes, 1, 1), (planes, planes, 3, stride), (planes, cout, 1, 1)]
        else:
            cout = planes
            shapes = [(cin, planes, 3, stride), (planes, planes, 3, 1)]
        for number, (a, b, kernel, step) in enumerate(shapes, 1):
            setattr(self, f"conv{number}", nn.Conv2d(a, b, kernel, step, kernel // 2, bias=False))
            setattr(self, f"bn{number}", nn.BatchNorm2d(b))
        self.count = len(shapes)
        self.downsample = None
        if stride != 1 or cin != cout:
            self.downsample = nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False),
                                            nn.BatchNorm2d(cout))

    def forward(self, x):
        y = x
        for number in range(1, self.count + 1):
            y = getattr(self, f"bn{number}")(getattr(self, f"conv{number}")(y))
            if number < self.count:
                y = F.relu(y)
        return F.relu(y + (x if self.downsample is None else self.downsample(x)))


class CifarResNet(nn.Module):
    def __init__(self, depth, classes):
        super().__init__()
        bottleneck = depth >= 44
        self.conv1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        channels = 16
        for number, planes in enumerate((16, 32, 64), 1):
            blocks = []
            for index in range((depth - 2) // 6):
                stride = 2 if number > 1 and index == 0 else 1
                blocks.append(CifarBlock(channels, planes, stride, bottleneck))
                channels = planes * (4 if bottleneck else 1)
            setattr(self, f"layer{number}", nn.Sequential(*blocks))
        self.fc = nn.Linear(channels, classes)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.fc(F.avg_pool2d(x, 8).flatten(1))


class WideBlock(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.bn1 = nn.BatchNorm2d(cin)
        self.conv1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(cout)
        self.conv2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.shortcut = nn.Conv2d(cin, cout, 1, stride, bias=False) if cin != cout else None

    def forward(self, x):
        active = F.relu(self.bn1(x))
        y = self.conv2(F.relu(self.bn2(self.conv1(active))))
        return y + (x if self.shortcut is None else self.shortcut(active))


class WideResNet(nn.Module):
    def __init__(self, classes, depth=28, widen=4):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        channels = 16
        for number, width in enumerate((16 * widen, 32 * widen, 64 * widen), 1):
            blocks = []
            for index in range((depth - 4) // 6):
                blocks.append(WideBlock(channels, width, 2 if number > 1 and index == 0 else 1))
                channels = width
            setattr(self, f"layer{number}", nn.Sequential(*blocks))
        self.bn = nn.BatchNorm2d(channels)
        self.fc = nn.Linear(channels, classes)

    def forward(self, x):
        x = F.relu(self.bn(self.layer3(self.layer2(self.layer1(self.conv1(x))))))
        return self.fc(F.avg_pool2d(x, 8).flatten(1))


class NormThenConv(nn.Module):
    def __init__(self, cin, cout, kernel):
        super().__init__()
        self.bn1 = nn.BatchNorm2d(cin)
        self.conv1 = nn.Conv2d(cin, cout, kernel, 1, kernel // 2, bias=False)

    def forward(self, x):
        return self.conv1(F.relu(self.bn1(x)))


class CifarDenseNet(nn.Module):
    def __init__(self, classes, depth=40, growth=12):
        super().__init__()
        channels = 2 * growth
        self.conv1 = nn.Conv2d(3, channels, 3, 1, 1, bias=False)
        for number in (1, 2, 3):
            layers = nn.ModuleList()
            for _ in range((depth - 4) // 3):
                layers.append(NormThenConv(channels, growth, 3))
                channels += growth
            setattr(self, f"dense{number}", layers)
            if number < 3:
                setattr(self, f"trans{number}", NormThenConv(channels, channels // 2, 1))
                channels //= 2
        self.bn = nn.BatchNorm2d(channels)
        self.fc = nn.Linear(channels, classes)

    def forward(self, x):
        x = self.conv1(x)
        for number in (1, 2, 3):
            for layer in getattr(self, f"dense{number}"):
                x = torch.cat([x, layer(x)], 1)
            if number < 3:
                x = F.avg_pool2d(getattr(self, f"trans{number}")(x), 2)
        return self.fc(F.avg_pool2d(F.relu(self.bn(x)), 8).flatten(1))


class SqueezeExcitation(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.fc1 = nn.Conv2d(channels, channels // 16, 1)
        self.fc2 = nn.Conv2d(channels // 16, channels, 1)

    def forward(self, x):
        return x * torch.sigmoid(self.fc2(F.relu(self.fc1(x.mean((2, 3), keepdim=True)))))


class SqueezeExcitationBottleneck(torchvision.models.resnet.Bottleneck):
    def __init__(self, inplanes, planes, *rest, **named):
        super().__init__(inplanes, planes, *rest, **named)
        self.se = SqueezeExcitation(4 * planes)

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = F.relu(self.bn2(self.conv2(y)))
        y = self.se(self.bn3(self.conv3(y)))
        return F.relu(y + (x if self.downsample is None else self.downsample(x)))


def se_resnext50_32x4d(classes):
    return torchvision.models.ResNet(SqueezeExcitationBottleneck, [3, 4, 6, 3], num_classes=classes,
                                     groups=32, width_per_group=4)


class MnistNet(nn.Module):
    def __init__(self, channels, features, classes):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(channels, 20, 5), nn.Conv2d(20, 50, 5)
        self.fc1, self.fc2 = nn.Linear(features, 500), nn.Linear(500, classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc2(F.relu(self.fc1(x.flatten(1))))


class LeNet(nn.Module):
    def __init__(self, channels, padding, classes):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(channels, 6, 5, padding=padding), nn.Conv2d(6, 16, 5)
        self.conv3 = nn.Conv2d(16, 120, 5)
        self.fc1, self.fc2 = nn.Linear(120, 84), nn.Linear(84, classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc2(F.relu(self.fc1(F.relu(self.conv3(x)).flatten(1))))


class Mlp(nn.Module):
    def __init__(self, sizes, activation):
        super().__init__()
        self.activation, self.count = activation, len(sizes) - 1
        for number, (a, b) in enumerate(zip(sizes, sizes[1:]), 1):
            setattr(self, f"fc{number}", nn.Linear(a, b))

    def forward(self, x):
        x = x.flatten(1)
        for number in range(1, self.count):
            x = self.activation(getattr(self, f"fc{number}")(x))
        return getattr(self, f"fc{self.count}")(x)


# --- the comparison --------------------------------------------------------------------------

def from_torchvision(name, classes):
    return getattr(torchvision.models, name)(weights=None, num_classes=classes)


def resnet18_cifar(classes):
    model = from_torchvision("resnet18", classes)
    model.conv1 = nn.Conv2d(3, 64, 3, 1, 1, bias=False)
    model.maxpool = nn.Identity()
    return model


# model: (channels, image size, classes, constructor). The odd size shows differences in padding.
CASES = {name: (3, 79, 7, lambda name=name: from_torchvision(name, 7)) for name in (
    "resnet18 resnet34 resnet50 resnet101 resnet152 resnext50_32x4d wide_resnet50_2 alexnet "
    "googlenet densenet121 squeezenet1_0 mobilenet_v2 vgg11 vgg13 vgg16 vgg19 vgg11_bn vgg13_bn "
    "vgg16_bn vgg19_bn").split()}
CASES.update({f"resnet{depth}": (3, 32, 10, lambda depth=depth: CifarResNet(depth, 10))
              for depth in (8, 20, 32, 44, 56, 110)})
CASES.update({
    "se_resnext50_32x4d": (3, 79, 7, lambda: se_resnext50_32x4d(7)),
    "resnet18-cifar": (3, 32, 10, lambda: resnet18_cifar(10)),
    "wideresnet": (3, 32, 10, lambda: WideResNet(10)),
    "densenet": (3, 32, 10, lambda: CifarDenseNet(10)),
    "mnistnet": (1, 28, 10, lambda: MnistNet(1, 800, 10)),
    "cifar10net": (3, 32, 10, lambda: MnistNet(3, 1250, 10)),
    "lenet": (1, 28, 10, lambda: LeNet(1, 2, 10)),
    "mlp-100": (1, 28, 10, lambda: Mlp([784, 100, 10], torch.sigmoid)),
    "mlp-4096": (1, 28, 10, lambda: Mlp([784, 4096, 4096, 10], F.relu)),
})


def described(model):
    lines = {("parameter", name, tuple(value.shape)) for name, value in model.named_parameters()}
    return lines | {("buffer", name, tuple(value.shape)) for name, value in model.named_buffers()}


def read_manifest(path):
    rows = (line.split() for line in path.read_text().splitlines())
    return {(kind, name, tuple(int(size) for size in shape)) for kind, name, *shape in rows}


@torch.no_grad()
def difference(program, name, folder):
    """The largest difference relative to the largest output; raises where tensors are unlike."""
    channels, size, classes, construct = CASES[name]
    prefix = pathlib.Path(folder) / name
    subprocess.run([program, name, str(channels), str(size), str(classes), str(prefix)], check=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = construct()
    ours, theirs = read_manifest(prefix.with_name(name + ".manifest")), described(model)
    if ours != theirs:
        raise ValueError(f"only ours: {sorted(ours - theirs)[:5]}; "
                         f"only theirs: {sorted(theirs - ours)[:5]}")
    for key, tensor in model.state_dict().items():
        if tensor.is_floating_point():
            fill(key, tensor)
    inputs = torch.empty(2, channels, size, size)
    fill("input", inputs)
    expected = model.eval()(inputs).numpy()
    actual = numpy.fromfile(prefix.with_name(name + ".output"), numpy.float32)
    actual = actual.reshape(expected.shape)
    scale = numpy.abs(expected).max()
    if not (numpy.isfinite(expected).all() and numpy.isfinite(actual).all() and scale > 0):
        raise ValueError(f"outputs are not finite or all zero (largest {scale})")
    return float(numpy.abs(expected - actual).max() / scale)


def without_random_initialization():
    # Every value is overwritten, and drawing 140 million of them for each VGG takes seconds.
    for function in ("normal_", "uniform_", "kaiming_normal_", "kaiming_uniform_", "trunc_normal_"):
        setattr(nn.init, function, lambda tensor, *rest, **named: tensor)


def main():
    torch.set_num_threads(1)
    without_random_initialization()
    names = sys.argv[2:] or list(CASES)
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            try:
                found = difference(sys.argv[1], name, folder)
                good = found <= TOLERANCE
                verdict = "ok" if good else "FAILED"
                print(f"{name:20} {verdict}  largest relative difference {found:.1e}", flush=True)
            except (ValueError, subprocess.CalledProcessError) as error:
                good = False
                print(f"{name:20} FAILED  {error}", flush=True)
            failed += not good
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
