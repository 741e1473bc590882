"""The files of CIFAR-10 with noise in them: what is measured does not depend on the pictures."""
import os
import pathlib


def write_to(folder):
    """Writes the files to FOLDER/cifar-10; returns FOLDER, for --data-dir."""
    images = pathlib.Path(folder) / "cifar-10"
    images.mkdir(parents=True)
    for name in [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]:
        data = bytearray(os.urandom(10000 * 3073))
        data[::3073] = bytes(i % 10 for i in range(10000))
        (images / f"{name}.bin").write_bytes(data)
    return folder
