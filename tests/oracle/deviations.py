"""Every deliberate difference between catena and NumPy that the cases know, in one place.

Values
- The reciprocal of the integer 0 is 0; NumPy gives what the processor's division leaves.
- Integers to a negative power round towards 0 (`power` of integers); NumPy raises. Not generated.
- x to the power 0.5 is C's pow, which says inf for -inf and 0 for -0; NumPy 2 takes the square root
  where the exponent is one number, NaN and -0, and pow where it is an array.
- Shifts by a negative number are undefined in NumPy. Not generated.
- Floats out of range have no defined integer image. Not generated.
- floor, ceil and trunc of integers are floats, as NumPy's were before version 2.1.
- sum(dtype=narrower) may round each term or only the sum.
- trapezoid, unwrap, quantiles and densities convert integers before they subtract or add; NumPy
  wraps. Averages, norms, gradients and integrals of float16 compute in float32; NumPy overflows.
- Medians, quantiles and edges of histograms do not overflow where the results fit.
- A histogram whose edges are not distinct is an error, as in NumPy since version 2.
- arange counts integers exactly; NumPy divides as float64 and loses elements near the ends of int64.
- A host number that an integer type does not hold is an error where it is stored, floats included.

Forms
- An axis of a 0-d array is an error; NumPy lets 0 and -1 pass in some routines.
- The shape of an output array is the shape of the result; NumPy broadcasts results into larger ones.
- ravel gives a view wherever strides allow one; NumPy copies arrays with gaps.
- Views of 0-d arrays are arrays; NumPy gives numbers, which are copies.
- diagonal is writable, and so is what broadcast_to gives when no element repeats.
- take checks positions even where nothing is taken, from an array without elements.
- An integer that does not fit the type of the arrays it meets is an error in logical functions too,
  where NumPy lets it pass.

bfloat16, which NumPy lacks, is the float32 result rounded once; see values.py for its promotion.
"""
import numpy as np


# What catena's error may stand for beside NumPy's exception: NumPy's own code indexes out of range
# or raises ValueError for a position or an axis that is out of range.
ERROR_TYPES = {"argmax": "ValueError", "argmin": "ValueError", "choose": "IndexError",
               "fliplr": "IndexError", "flipud": "IndexError", "gradient": "ValueError",
               "gradient_edges": "ValueError", "percentile": "ValueError", "quantile": "ValueError",
               "tensordot": "ValueError"}


def reciprocal(x, dtype=None):
    x = np.asarray(x, dtype)
    if x.dtype.kind == "f":
        return np.reciprocal(x)
    x = x.astype(np.int8) if x.dtype == np.bool_ else x
    return np.where(x == 0, 0, np.reciprocal(np.where(x == 0, 1, x).astype(x.dtype))).astype(x.dtype)


def power(x, y):
    with np.errstate(all="ignore"):
        return np.where((y == 0.5) & (np.isinf(x) | (x == 0)), np.abs(x), np.power(x, y))


def of_float(function):
    """The function on integers as on the float that holds them."""
    def call(x, dtype=None):
        x = np.asarray(x, dtype)
        if x.dtype.kind in "biu":
            x = x.astype({1: np.float16, 2: np.float32}.get(x.itemsize, np.float64))
        return function(x)

    return call


# Functions that stand for NumPy's of the same name.
FUNCTIONS = {"reciprocal": reciprocal, "power": power}
FUNCTIONS |= {f.__name__: of_float(f) for f in (np.floor, np.ceil, np.trunc)}


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


def shared(name, numpy_shares, x):
    """Whether catena's result must be a view: as NumPy, but for what says otherwise above."""
    if x.a.size == 0 or x.a.ndim == 0:
        return None
    return True if numpy_shares else None if name == "ravel" else False
