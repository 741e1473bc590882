"""Holds the pixels of an image folder against those of torchvision's ImageFolder, bit for bit.

    compare_pixels.py PATH_TO_image_samples [FOLDER]

Both resize the shorter side to 256 and crop 224 x 224 from the middle. FOLDER has a folder for each
class; without it pictures of many kinds and sizes are made, in folders within the classes' too.
"""
import pathlib
import random
import subprocess
import sys
import tempfile

import torch
from PIL import Image
from torchvision import transforms
from torchvision.datasets import ImageFolder

SIDE = 224
SIZES = [(300, 260), (256, 256), (100, 80), (511, 700), (1024, 512), (1100, 1601), (2300, 2100)]


def picture(size, mode):
    """Coarse shapes under fine noise: both matter to a decoder that takes a short cut."""
    coarse = Image.effect_noise((9, 9), 120).resize(size, Image.BICUBIC)
    channels = [Image.blend(coarse.rotate(90 * i).resize(size), Image.effect_noise(size, 90), 0.3)
                for i in range(3)]
    return Image.merge("RGB", channels).convert(mode)


def write_pictures(folder):
    (folder / "a/deep/er").mkdir(parents=True)
    (folder / "b").mkdir()
    for i, size in enumerate(SIZES):
        picture(size, "RGB").save(folder / "a" / ("deep/er" if i % 2 else "") / f"{i}.jpg",
                                  quality=random.randrange(60, 96), progressive=i % 2 == 0,
                                  subsampling=i % 3)
    for mode, name in (("L", "grey.jpg"), ("CMYK", "inks.jpg"), ("RGB", "colour.png"),
                       ("RGBA", "clear.png"), ("P", "palette.png"), ("L", "grey.png")):
        picture((640, 1200), mode).save(folder / "b" / name)


def compare(program, folder):
    ours = subprocess.run([program, folder, str(SIDE)], stdout=subprocess.PIPE, check=True).stdout
    theirs = ImageFolder(folder, transforms.Compose([transforms.Resize(256),
                                                     transforms.CenterCrop(SIDE),
                                                     transforms.PILToTensor()]))
    record = 1 + 3 * SIDE * SIDE
    assert len(ours) == record * len(theirs), f"{len(ours) / record} pictures, not {len(theirs)}"
    wrong = 0
    for i, (pixels, label) in enumerate(theirs):
        own = torch.tensor(list(ours[i * record:(i + 1) * record]), dtype=torch.int32)
        furthest = (own[1:] - pixels.flatten().to(torch.int32)).abs().max().item()
        if furthest > 0 or own[0] != label:
            print(f"{theirs.samples[i][0]}: label {own[0]}, pixels differ by up to {furthest}")
            wrong += 1
    print(f"{len(theirs) - wrong} of {len(theirs)} pictures are the same")
    return wrong == 0


def main():
    random.seed(1)
    if len(sys.argv) > 2:
        return compare(sys.argv[1], sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        write_pictures(pathlib.Path(folder))
        return compare(sys.argv[1], folder)


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
