#!/usr/bin/env python3
"""Files of tensors by PyTorch and the safetensors package, for the tests of catena's readers.

usage: tensor_files.py write FOLDER   random state dicts as N.pt, N.safetensors, N.npz (the values;
                                      bfloat16 as float32)
       tensor_files.py check FOLDER   every ours-N.safetensors there holds what N.npz says
       tensor_files.py --check        status 0 if both packages are there
"""
import argparse
import collections
import datetime
import pathlib
import random
import sys

try:
    import numpy
    import torch
    import safetensors.torch
except ImportError as error:
    sys.exit(f"tensor_files.py: {error}")

DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32,
          torch.int16, torch.int8, torch.uint8, torch.bool, torch.uint16, torch.uint32,
          torch.uint64]


def random_tensor():
    """Of any dtype and of at most four axes, often a view of a larger storage."""
    dtype = random.choice(DTYPES)
    shape = [random.choice([0, 1, 2, 3, 5, 8]) for _ in range(random.randrange(5))]
    values = torch.randint(0, 2 if dtype == torch.bool else 100, shape)
    x = values.to(dtype)
    if dtype.is_floating_point:
        x = torch.randn(shape).to(dtype)
    if x.ndim >= 2:
        x = random.choice([lambda: x, lambda: x.transpose(0, 1), lambda: x[1:], lambda: x[:, :1],
                           lambda: x[::2], lambda: x[0], lambda: x[:1].expand(3, *x.shape[1:])])() \
            if x.shape[0] else x
    if x.ndim == 4 and random.random() < 0.3:
        x = x.contiguous(memory_format=torch.channels_last)
    return x


def state_dict():
    state = {}
    for i in range(random.randrange(1, 12)):
        x = random_tensor()
        state[f"layer{i}.weight"] = torch.nn.Parameter(x) if x.is_floating_point() and \
            random.random() < 0.3 else x
        if x.ndim and random.random() < 0.3:  # shares its storage
            state[f"layer{i}.part"] = x[: x.shape[0] // 2]
    return state


def as_numpy(x):
    x = x.detach()
    return (x.float() if x.dtype == torch.bfloat16 else x).numpy()


def write(folder):
    for n in range(20):
        random.seed(n)
        torch.manual_seed(n)
        state = state_dict()
        # Every second file in the format of before 1.6, every third with values that are skipped.
        extra = {"others": [set([1]), collections.Counter("aab"), numpy.float64(0.5),
                            numpy.zeros(2), pathlib.Path("a"), torch.Size([2]), torch.float16,
                            datetime.date(2026, 1, 2), argparse.Namespace(lr=0.1), 1j, range(3)]}
        torch.save({"model": state, "epoch": n, **(extra if n % 3 == 0 else {})},
                   folder / f"{n}.pt", pickle_protocol=random.choice([2, 3, 4, 5]),
                   _use_new_zipfile_serialization=n % 2 == 0)
        safetensors.torch.save_file({k: x.detach().clone().contiguous() for k, x in state.items()},
                                    folder / f"{n}.safetensors", {"format": "pt", "n": str(n)})
        numpy.savez(folder / f"{n}.npz", **{k: as_numpy(x) for k, x in state.items()})


def check(folder):
    for path in sorted(folder.glob("ours-*.safetensors")):
        ours = safetensors.torch.load_file(path)
        expected = numpy.load(folder / path.name.replace("ours-", "").replace("safetensors", "npz"))
        assert set(ours) == set(expected.files), path
        for name, x in ours.items():
            assert numpy.array_equal(as_numpy(x), expected[name], equal_nan=True), (path, name)
            assert x.shape == expected[name].shape, (path, name)
        with safetensors.safe_open(path, "pt") as file:
            assert file.metadata() == {"format": "pt"}, path
        print(f"{path.name}: {len(ours)} tensors")


if __name__ == "__main__":
    if sys.argv[1:2] in (["write"], ["check"]) and len(sys.argv) == 3:
        {"write": write, "check": check}[sys.argv[1]](pathlib.Path(sys.argv[2]))
    elif sys.argv[1:] != ["--check"]:
        sys.exit(__doc__)
