"""Holds the language model's loss and gradients against PyTorch's nn.LSTM.

    compare_lstm.py PATH_TO_lstm_gradients

Both sides fill the parameters with the same values and run two pieces of a text, the second going on
from the first without its gradients. Fails when the loss or a gradient of the second differs by more
than 1e-5 of the largest entry.
"""
import pathlib
import subprocess
import sys
import tempfile

import numpy
import torch
from torch import nn

TOLERANCE = 1e-5


class LanguageModel(nn.Module):
    def __init__(self, words, units, layers, tied):
        super().__init__()
        self.encoder = nn.Embedding(words, units)
        self.rnn = nn.LSTM(units, units, layers)
        self.decoder = nn.Linear(units, words)
        if tied:
            self.decoder.weight = self.encoder.weight

    def forward(self, words, state):
        output, state = self.rnn(self.encoder(words.t()), state)
        return self.decoder(output.transpose(0, 1)).flatten(0, 1), state


@torch.no_grad()
def fill(model):
    for number, (_, tensor) in enumerate(model.named_parameters()):
        values = (numpy.arange(tensor.numel()) * 37 + number * 101) % 257 - 128
        tensor.copy_(torch.from_numpy(values.astype(numpy.float32) / 512).view(tensor.shape))


def compare(program, case, folder):
    words, units, layers, tied, rows, piece = case
    prefix = pathlib.Path(folder) / "ours"
    subprocess.run([program, *map(str, case), str(prefix)], check=True)
    model = LanguageModel(words, units, layers, tied)
    # The same order as ours, in which a tied decoder has no weight.
    fill(model)
    state, loss = None, None
    for part in range(2):
        index = torch.arange(rows * piece)
        inputs = ((index * index + 7 * part) % words).view(rows, piece)
        logits, state = model(inputs, state)
        state = tuple(each.detach() for each in state)
        loss = nn.functional.cross_entropy(logits, (3 * index + part) % words)
    loss.backward()
    ours = float(prefix.with_name("ours.loss").read_text())
    worst = abs(ours - loss.item()) / loss.item()
    for name, tensor in model.named_parameters():
        found = numpy.fromfile(prefix.with_name("ours." + name), numpy.float32)
        expected = tensor.grad.numpy().ravel()
        if found.shape != expected.shape:
            raise ValueError(f"{name}: {found.shape} instead of {expected.shape}")
        worst = max(worst, float(numpy.abs(found - expected).max() / numpy.abs(expected).max()))
    return worst


def main():
    torch.set_num_threads(1)
    failed = False
    for case in ((50, 16, 2, 1, 4, 7), (50, 16, 2, 0, 4, 7), (11, 8, 3, 1, 1, 1), (300, 40, 1, 1, 3, 35)):
        with tempfile.TemporaryDirectory() as folder:
            worst = compare(sys.argv[1], case, folder)
        failed |= not worst <= TOLERANCE
        print(case, f"largest relative difference {worst:.1e}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
