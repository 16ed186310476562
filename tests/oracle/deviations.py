"""Every deliberate difference between catena and NumPy that the cases know, in one place.

Values
- The reciprocal of the integer 0 is 0; NumPy gives what the processor's division leaves.
- Integers to a negative power round towards 0 (`power` of integers); NumPy raises. Not generated.
- Shifts by a negative number are undefined in NumPy. Not generated.
- Floats out of range have no defined integer image. Not generated.
- take(mode=clip) counts negative positions from the end before it clips; NumPy clips them to 0.
- sum(dtype=narrower) may round each term or only the sum.

Forms
- An axis of a 0-d array is an error; NumPy lets 0 and -1 pass in some routines.
- The shape of an output array is the shape of the result; NumPy broadcasts results into larger ones.
- ravel gives a view wherever strides allow one; NumPy copies arrays with gaps.
- Views of 0-d arrays are arrays; NumPy gives numbers, which are copies.
- diagonal is writable.
- take checks positions even where nothing is taken, from an array without elements.
- An integer that does not fit the type of the arrays it meets is an error everywhere; NumPy lets it
  pass in logical functions and, since version 2, in comparisons.

bfloat16, which NumPy lacks, is the float32 result rounded once; see values.py for its promotion.
"""
import numpy as np


def reciprocal(x, dtype=None):
    x = np.asarray(x, dtype)
    if x.dtype.kind == "f":
        return np.reciprocal(x)
    x = x.astype(np.int8) if x.dtype == np.bool_ else x
    return np.where(x == 0, 0, np.reciprocal(np.where(x == 0, 1, x).astype(x.dtype))).astype(x.dtype)


# Functions that stand for NumPy's of the same name.
FUNCTIONS = {"reciprocal": reciprocal}


def check_range(value, dtype):
    """Raises where a host number is too large for the integer type of the operation."""
    if isinstance(value, int) and np.dtype(dtype if dtype != "bfloat16" else "f4").kind in "iu":
        limits = np.iinfo(dtype)
        if not limits.min <= value <= limits.max:
            raise OverflowError


def axis_of_0d(shape, params):
    """Whether an axis of a 0-d array is named, which catena refuses."""
    axis = params.get("axis")
    return len(shape) == 0 and axis is not None and axis != []


def clip_positions(positions, extent):
    return np.clip(np.where(positions < 0, positions + extent, positions), 0, max(extent - 1, 0))


def shared(name, numpy_shares, x):
    """Whether catena's result must be a view: as NumPy, but for what says otherwise above."""
    if x.a.size == 0 or x.a.ndim == 0:
        return None
    return True if numpy_shares else None if name == "ravel" else False
