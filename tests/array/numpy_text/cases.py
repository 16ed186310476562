"""Writes arrays and the texts that NumPy makes of them: cases.py OUT.npz [SEED] [COUNT].

Each case has the members N/kind (0 repr, 1 str, 2 savetxt, 3 tofile), N/a, N/text and, by kind,
N/options (numbers of the print options) or N/words (format, delimiter or separator)."""
import os
import sys
import tempfile

os.environ.setdefault("NPY_PROMOTION_STATE", "weak")
import numpy as np

NUMPY_2 = int(np.__version__.split(".")[0]) >= 2
if NUMPY_2:  # which prints the shape of summarized arrays
    np.set_printoptions(legacy="1.25")

DTYPES = "? i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8".split()
SHAPES = [(), (1,), (5,), (0,), (2, 0, 3), (0, 3), (3, 4), (2, 3, 4), (1, 1), (20,), (40, 30),
          (1200,), (1001, 2), (3, 2, 30), (2, 2, 2, 2), (13, 9, 11)]
MODES = ["fixed", "unique", "maxprec", "maxprec_equal"]


def floats(rng, shape, dtype):
    """Values whose layout is of one kind or of several."""
    kind = rng.integers(8)
    a = rng.standard_normal(shape)
    if kind == 0:
        a = np.round(a * 10)
    elif kind == 1:
        a = np.round(a * 100, rng.integers(4))
    elif kind == 2:
        a = a * 10.0 ** rng.integers(-6, 7)
    elif kind == 3:
        a = a * 10.0 ** rng.integers(-6, 7, size=shape)
    elif kind == 4:
        a = np.abs(a)
    elif kind == 5:
        a = a * 10.0 ** float(rng.integers(-300, 300))
    elif kind == 6:
        a = np.asarray(rng.choice([0.0, 1.0, -1.0, 0.5, 1e-4, 1e8, 99999999.0, 0.1, 1e16], size=shape))
    a = np.asarray(a)
    if rng.integers(3) == 0 and a.size:
        spoilt = np.asarray(rng.integers(4, size=shape) == 0)
        a[spoilt] = rng.choice([np.nan, np.inf, -np.inf, 0.0, -0.0], size=int(spoilt.sum()))
    with np.errstate(over="ignore"):
        return a.astype(dtype)


def array(rng, shape):
    dtype = np.dtype(DTYPES[rng.integers(len(DTYPES))])
    if rng.integers(2):
        dtype = np.dtype(["f2", "f4", "f8"][rng.integers(3)])
    if dtype.kind == "f":
        a = floats(rng, shape, dtype)
    elif dtype.kind == "b":
        a = np.asarray(rng.integers(0, 2, size=shape) if rng.integers(2) else np.ones(shape)).astype(bool)
    else:
        info = np.iinfo(dtype)
        low, high = (max(info.min, -9), 9) if rng.integers(2) else (info.min, info.max)
        a = np.asarray(rng.integers(low, high, size=shape, dtype=dtype, endpoint=True))
    return a.T if rng.integers(4) == 0 else a


def printed(rng, kind):
    a = array(rng, SHAPES[rng.integers(len(SHAPES))])
    options = [8, 1000, 3, 75, 0, ord("-"), 2]
    if rng.integers(3):
        options = [int(rng.integers(0, 18)), int(rng.choice([0, 5, 1000, 10**6])), int(rng.integers(1, 5)),
                   int(rng.integers(10, 120)), int(rng.integers(2)), ord(rng.choice(["-", "+", " "])),
                   int(rng.integers(4))]
    if a.size > 2000:
        options[1] = 1000
    if NUMPY_2 and a.dtype.kind in "iu":  # which applies the sign to integers too
        options[5] = ord("-")
    if NUMPY_2 and a.size == 0:  # which breaks short lines elsewhere
        options[3] = 75
    with np.printoptions(precision=options[0], threshold=options[1], edgeitems=options[2],
                         linewidth=options[3], suppress=bool(options[4]), sign=chr(options[5]),
                         floatmode=MODES[options[6]]):
        return {"a": a, "options": np.array(options), "text": text_of(repr(a) if kind == 0 else str(a))}


def text_of(text):
    return np.frombuffer(text.encode(), np.uint8)


def written(rng, kind, path):
    shape = [(7,), (1,), (3, 4), (4, 1), (2, 6)][rng.integers(5)]
    a = array(rng, shape)
    a = np.asarray(a, a.dtype if a.dtype != bool else np.uint8)
    if kind == 2:
        formats = ["%.18e", "%8.3f", "%g", "%+.4G", "%s", "%-12.5e|", "%010.2f", "x%5s"]
        if np.isfinite(a.astype("f8")).all():
            formats += ["%d", "%6i", "%+d"]
        words = [formats[rng.integers(len(formats))], [" ", ",", ";  "][rng.integers(3)],
                 ["", "a b", "two\nlines"][rng.integers(3)]]
        np.savetxt(path, a, fmt=words[0], delimiter=words[1], header=words[2])
    else:
        words = [["%s", "%.3f", "%g", "%12.4e"][rng.integers(4)], [" ", ", ", ";"][rng.integers(3)], ""]
        a.tofile(path, sep=words[1], format=words[0])
    with open(path, "rb") as file:
        text = np.frombuffer(file.read(), np.uint8)
    return {"a": a, "words": text_of("\0".join(words)), "text": text}


def main():
    out = sys.argv[1]
    seed, count = (int(word) for word in (sys.argv[2:] + ["1", "3000"][len(sys.argv) - 2:]))
    rng = np.random.default_rng(seed)
    members = {}
    with tempfile.TemporaryDirectory() as folder, np.errstate(all="ignore"):
        for number in range(count):
            kind = int(rng.choice([0, 0, 1, 1, 2, 3]))
            case = printed(rng, kind) if kind < 2 else written(rng, kind, os.path.join(folder, "x"))
            members[f"{number}/kind"] = np.array(kind)
            members.update({f"{number}/{name}": value for name, value in case.items()})
    np.savez(out, **members)
    print(f"{count} cases by NumPy {np.__version__}, seed {seed}")


main()
