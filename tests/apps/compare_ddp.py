"""Holds runs of two workers against PyTorch's DistributedDataParallel.

    compare_ddp.py PROGRAM SOURCE_DIR

Both sides get the same initial weights and the same batches, which this script writes: PyTorch's
two processes talk through Gloo, ours through threads and through MPI. Fails when after 30 steps a
weight or a running statistic differs by more than 1e-4.
"""
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

import numpy
import torch
from torch import distributed, multiprocessing, nn
from torch.nn import functional as F

sys.path.insert(0, str(pathlib.Path(sys.argv[2]) / "tests" / "models"))
from compare_torchvision import CASES  # noqa: E402

TOLERANCE = 1e-4
WORKERS, BATCH, SAMPLES, STEPS = 2, 16, 320, 30  # three epochs of ten steps
MOMENTUM, DECAY = 0.9, 1e-3
# Batch normalisation magnifies rounding: at a rate of 0.02 PyTorch ends 2e-2 away from itself when
# it only lays its images out otherwise.
LR = {"mnistnet": 0.02, "resnet8": 0.0002}
DTYPES = {"F32": numpy.float32, "I64": numpy.int64}


# --- what both sides are given ----------------------------------------------------------------

def make_images(channels, size):
    random = numpy.random.default_rng(5)
    labels = random.integers(0, 10, SAMPLES, dtype=numpy.uint8)
    noise = random.integers(0, 128, (SAMPLES, channels, size, size), dtype=numpy.uint8)
    return noise + 12 * labels[:, None, None, None], labels


def write_idx(folder, images, labels):
    for part in ("train", "t10k"):
        header = struct.pack(">IIII", 2051, len(images), *images.shape[2:])
        (folder / f"{part}-images-idx3-ubyte").write_bytes(header + images.tobytes())
        header = struct.pack(">II", 2049, len(labels))
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(header + labels.tobytes())


def write_cifar(folder, images, labels):
    rows = numpy.concatenate([labels[:, None], images.reshape(SAMPLES, -1)], axis=1)
    for number, part in enumerate(numpy.split(rows, 5), 1):
        (folder / f"data_batch_{number}.bin").write_bytes(part.tobytes())
    (folder / "test_batch.bin").write_bytes(rows[:20].tobytes())


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, tensor in tensors.items():
        values = tensor.numpy()
        kind = next(name for name, dtype in DTYPES.items() if dtype == values.dtype)
        header[name] = {"dtype": kind, "shape": list(values.shape),
                        "data_offsets": [len(data), len(data) + values.nbytes]}
        data += values.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def read_safetensors(path):
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8:8 + length])
    header.pop("__metadata__", None)
    data = content[8 + length:]
    return {name: numpy.frombuffer(data[slice(*entry["data_offsets"])],
                                   DTYPES[entry["dtype"]]).reshape(entry["shape"])
            for name, entry in header.items()}


# --- both sides -------------------------------------------------------------------------------

def train_in_torch(rank, name, folder):
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=f"file://{folder}/meeting-{name}",
                                   rank=rank, world_size=WORKERS)
    channels, size, _, construct = CASES[name]
    model = construct()
    model.load_state_dict(torch.load(f"{folder}/{name}.pt"))
    model = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), LR[name], MOMENTUM, weight_decay=DECAY)
    images, labels = make_images(channels, size)
    images = torch.from_numpy(images.astype(numpy.float32) / 255)
    labels = torch.from_numpy(labels.astype(numpy.int64))
    for step in range(STEPS):
        begin = (step * WORKERS + rank) * BATCH % SAMPLES
        optimizer.zero_grad()
        F.cross_entropy(model(images[begin:begin + BATCH]), labels[begin:begin + BATCH]).backward()
        optimizer.step()
    if rank == 0:
        torch.save(model.module.state_dict(), f"{folder}/{name}-trained.pt")
    distributed.destroy_process_group()


def train_in_cohort(program, name, folder, engine):
    channels, _, _, _ = CASES[name]
    launcher = ["mpirun", "-n", str(WORKERS), "--oversubscribe"] if engine == "mpi" else []
    workers = [] if engine == "mpi" else ["--workers", WORKERS]
    command = [*launcher, program, "train", "--name", engine, "--runs-dir", folder / name,
               "--model", name, "--data", "fashion-mnist" if channels == 1 else "cifar-10",
               "--data-dir", folder / f"data-{channels}", "--init", folder / f"{name}.safetensors",
               "--method", "all-reduce", "--engine", engine, *workers, "--batch", BATCH, "--lr", LR[name],
               "--momentum", MOMENTUM, "--weight-decay", DECAY, "--iterations", STEPS,
               "--shuffle", "false", "--augment", "none", "--normalize", "none", "--threads", 1,
               "--eval-every", 0, "--quiet"]
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1",
                   "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    subprocess.run(list(map(str, command)), check=True, timeout=120, env=environment)
    exported = folder / f"{name}-{engine}.safetensors"
    subprocess.run([program, "export", str(folder / name / engine), "--which", "latest", "-o",
                    str(exported)], check=True, timeout=60, stdout=subprocess.DEVNULL)
    return read_safetensors(exported)


def compare(program, name, folder, engines):
    """The largest difference by engine, of all tensors."""
    torch.manual_seed(3)
    initial = CASES[name][3]().state_dict()
    torch.save(initial, folder / f"{name}.pt")
    write_safetensors(folder / f"{name}.safetensors", initial)
    multiprocessing.spawn(train_in_torch, (name, str(folder)), nprocs=WORKERS)
    trained = torch.load(folder / f"{name}-trained.pt")
    moved = max(float((trained[key] - initial[key]).abs().max())
                for key in trained if key.endswith((".weight", ".bias")))
    if moved < 20 * TOLERANCE:
        raise ValueError(f"PyTorch's weights moved by {moved:.1e} only: this shows nothing")
    for engine in engines:
        ours = train_in_cohort(program, name, folder, engine)
        if ours.keys() != trained.keys():
            raise ValueError(f"tensors differ: {sorted(ours.keys() ^ trained.keys())}")
        yield engine, max(float(numpy.abs(ours[key] - trained[key].numpy()).max())
                          for key in trained)


def main():
    program = os.path.abspath(sys.argv[1])
    engines = ["threads"] + (["mpi"] if shutil.which("mpirun") else [])
    failed = 0
    with tempfile.TemporaryDirectory() as path:
        folder = pathlib.Path(path)
        for channels, size, write in ((1, 28, write_idx), (3, 32, write_cifar)):
            (folder / f"data-{channels}").mkdir()
            write(folder / f"data-{channels}", *make_images(channels, size))
        for name in ("mnistnet", "resnet8"):
            for engine, found in compare(program, name, folder, engines):
                good = found <= TOLERANCE
                failed += not good
                print(f"{name:10} {engine:8} {'ok' if good else 'FAILED'}  "
                      f"largest difference {found:.1e}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
