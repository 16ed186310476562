"""Exchanges arrays between catena and NumPy, PyTorch and CuPy without copies, by DLPack.

    python3 exchange.py build/lib/libcatena_exchange.so

Each library that is installed takes a catena array and gives one of its own back, on the CPU and,
where it and catena can use one, on a GPU. What is missing is said and skipped."""
import ctypes
import importlib
import sys

NAMES = (b"dltensor", b"dltensor_versioned")  # of capsules, by `versioned`
USED = (b"used_dltensor", b"used_dltensor_versioned")

python = ctypes.pythonapi
python.PyCapsule_New.restype = ctypes.py_object
python.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
python.PyCapsule_GetPointer.restype = ctypes.c_void_p
python.PyCapsule_GetPointer.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
python.PyCapsule_IsValid.restype = ctypes.c_int
python.PyCapsule_IsValid.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
python.PyCapsule_SetName.argtypes = [ctypes.c_void_p, ctypes.c_char_p]


def load(path):
    lib = ctypes.CDLL(path)
    pointer, text, number, real = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int64, ctypes.c_double
    for name, result, arguments in [
            ("error", text, []), ("arange", pointer, [number, number, text, text]),
            ("transpose", pointer, [pointer]), ("free", None, [pointer]),
            ("scale", ctypes.c_int, [pointer, real]),
            ("sum", ctypes.c_int, [pointer, ctypes.POINTER(real)]), ("address", pointer, [pointer]),
            ("device", None, [pointer, ctypes.POINTER(ctypes.c_int32), ctypes.POINTER(ctypes.c_int32)]),
            ("stream", number, [text]), ("to_dlpack", pointer, [pointer, number, ctypes.c_int]),
            ("from_dlpack", pointer, [pointer, ctypes.c_int]),
            ("release", None, [pointer, ctypes.c_int])]:
        function = getattr(lib, "exchange_" + name)
        function.restype, function.argtypes = result, arguments
    return lib


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def release_untaken(capsule):
    """The destructor of a capsule: a consumer renames it when it takes the tensor."""
    for versioned, name in enumerate(NAMES):
        if python.PyCapsule_IsValid(capsule, name):
            lib.exchange_release(python.PyCapsule_GetPointer(capsule, name), versioned)


class CatenaArray:
    """A catena array that speaks the protocol of Python's array API."""

    def __init__(self, handle):
        if not handle:
            raise RuntimeError(lib.exchange_error().decode())
        self.handle = handle

    def __del__(self):
        lib.exchange_free(getattr(self, "handle", None))

    @classmethod
    def arange(cls, rows, columns, dtype="float32", device="cpu:0"):
        return cls(lib.exchange_arange(rows, columns, dtype.encode(), device.encode()))

    @classmethod
    def from_dlpack(cls, other, device="cpu:0"):
        """Takes an array of any library that has __dlpack__, ready on catena's stream."""
        arguments = {} if device.startswith("cpu") else {"stream": lib.exchange_stream(device.encode())}
        try:
            capsule = other.__dlpack__(max_version=(1, 0), **arguments)
        except TypeError:  # the library is older than DLPack 1.0
            capsule = other.__dlpack__(**arguments)
        versioned = python.PyCapsule_IsValid(id(capsule), NAMES[1])
        tensor = python.PyCapsule_GetPointer(id(capsule), NAMES[versioned])
        array = cls(lib.exchange_from_dlpack(tensor, versioned))
        python.PyCapsule_SetName(id(capsule), USED[versioned])  # taken: not the capsule's any more
        return array

    def __dlpack_device__(self):
        kind, index = ctypes.c_int32(), ctypes.c_int32()
        lib.exchange_device(self.handle, ctypes.byref(kind), ctypes.byref(index))
        return kind.value, index.value

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        if copy or (dl_device is not None and tuple(dl_device) != self.__dlpack_device__()):
            raise BufferError("this example lends memory where it is, without a copy")
        versioned = int(max_version is not None and max_version[0] >= 1)
        number = 1 if stream is None else stream  # no stream means the legacy default one
        tensor = lib.exchange_to_dlpack(self.handle, number, versioned)
        if not tensor:
            raise BufferError(lib.exchange_error().decode())
        return python.PyCapsule_New(tensor, NAMES[versioned], ctypes.cast(release_untaken, ctypes.c_void_p))

    @property
    def T(self):
        return CatenaArray(lib.exchange_transpose(self.handle))

    @property
    def address(self):
        return lib.exchange_address(self.handle)

    def scale(self, factor):
        if lib.exchange_scale(self.handle, factor) != 0:
            raise RuntimeError(lib.exchange_error().decode())

    def sum(self):
        result = ctypes.c_double()
        if lib.exchange_sum(self.handle, ctypes.byref(result)) != 0:
            raise RuntimeError(lib.exchange_error().decode())
        return result.value


def check(condition, what):
    if not condition:
        raise SystemExit(f"FAILED: {what}")


def exchange(name, device, from_dlpack, make, address, values):
    """One library on one device, in both directions."""
    ours = CatenaArray.arange(2, 3, device=device)
    theirs = from_dlpack(ours)
    check(address(theirs) == ours.address, f"{name} has another address: a copy was made")
    check(values(theirs) == [[0, 1, 2], [3, 4, 5]], f"{name} reads {values(theirs)}")
    ours.scale(10)
    if device != "cpu:0":
        ours.sum()  # waits for the GPU
    check(values(theirs) == [[0, 10, 20], [30, 40, 50]], f"{name} does not see catena's writes")
    del ours  # the memory stays with its last user
    check(values(theirs)[1] == [30, 40, 50], f"{name} lost the memory")
    transposed = from_dlpack(CatenaArray.arange(2, 3, device=device).T)
    check(values(transposed) == [[0, 3], [1, 4], [2, 5]], f"{name} has other strides")

    given = make()
    back = CatenaArray.from_dlpack(given, device)
    check(back.address == address(given), f"catena has another address than {name}: a copy was made")
    check(back.sum() == 15, f"catena sums to {back.sum()} what {name} gave")
    back.scale(2)
    check(back.sum() == 30, "catena did not write")
    check(values(given) == [[0, 2, 4], [6, 8, 10]], f"{name} does not see catena's writes")
    CatenaArray.arange(1, 1, device=device).__dlpack__(stream=-1)  # a capsule that nobody takes
    print(f"{name} on {device}: exchanged in both directions without a copy")


def with_numpy():
    np = importlib.import_module("numpy")
    given = np.arange(6, dtype=np.float32).reshape(2, 3)
    before = sys.getrefcount(given)
    exchange("NumPy", "cpu:0", np.from_dlpack, lambda: given, lambda a: a.ctypes.data, lambda a: a.tolist())
    check(sys.getrefcount(given) == before, "catena still holds NumPy's array")
    try:
        CatenaArray.from_dlpack(np.arange(3, dtype=np.complex64))
        check(False, "complex numbers came in")
    except RuntimeError as error:
        check("complex" in str(error), str(error))


def with_torch(gpu):
    torch = importlib.import_module("torch")
    for device in ["cpu:0"] + (["cuda:0"] if gpu and torch.cuda.is_available() else []):
        where = device.replace("cpu:0", "cpu")
        exchange("PyTorch", device, torch.from_dlpack,
                 lambda: torch.arange(6, dtype=torch.float32, device=where).reshape(2, 3),
                 lambda t: t.data_ptr(), lambda t: t.tolist())


def with_cupy(gpu):
    cupy = importlib.import_module("cupy")
    if not gpu:
        raise ImportError("catena has no GPU here")
    exchange("CuPy", "cuda:0", cupy.from_dlpack, lambda: cupy.arange(6, dtype=cupy.float32).reshape(2, 3),
             lambda a: a.data.ptr, lambda a: a.tolist())


def main():
    global lib
    lib = load(sys.argv[1])
    gpu = lib.exchange_arange(1, 1, b"float32", b"cuda:0")
    if gpu:
        lib.exchange_free(gpu)
    else:
        print("******** SKIPPED: GPUs:", lib.exchange_error().decode().splitlines()[0], "********")
    with_numpy()
    for name, run in [("PyTorch", with_torch), ("CuPy", with_cupy)]:
        try:
            run(bool(gpu))
        except ImportError as error:
            print(f"******** SKIPPED: {name}: {error} ********")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    main()
