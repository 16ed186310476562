"""NumPy, CuPy and PyTorch under one set of names, for peers_routines.py."""


class Library:
    """What the cases ask of a library; `wait` ends when the device is idle."""

    def __init__(self, name, gpu):
        self.name, self.gpu = name, gpu
        self.wait = lambda: None


class NumpyLike(Library):
    """NumPy, and CuPy, which has its names."""

    def __init__(self, name, gpu):
        super().__init__(name, gpu)
        if gpu:
            import cupy as xp
            self.wait = xp.cuda.Device().synchronize
        else:
            import numpy as xp
        self.xp = xp
        self.version = xp.__version__

    def uniform(self, *shape):
        return self.xp.random.random_sample(shape).astype("float32") if not self.gpu else \
            self.xp.random.random(shape, dtype="float32")

    def integers(self, n, high):
        return self.xp.random.randint(0, high, size=n).astype("int64")

    def cast(self, a, dtype):
        return a.astype(dtype)

    def empty(self, shape, dtype="float32"):
        return self.xp.empty(tuple(shape), dtype)

    def copy(self, to, source):
        self.xp.copyto(to, source, casting="unsafe")

    def add(self, a, b, out):
        self.xp.add(a, b, out=out)

    def clip(self, a, low, high, out):
        if self.gpu:
            self.xp.clip(a, low, high, out=out)
        else:
            self.xp.core.umath.clip(a, low, high, out=out) if hasattr(self.xp, "core") else self.xp.clip(a, low, high, out=out)

    def unary(self, name, a, out):
        getattr(self.xp, name)(a, out=out)

    def binary(self, name, a, b, out):
        getattr(self.xp, name)(a, b, out=out)

    def where(self, condition, a, b):
        return self.xp.where(condition, a, b)

    def reverse(self, a):
        return a[::-1]

    def less(self, a, b):
        return a < b

    def permute(self, a, axes):
        return a.transpose(axes)

    def every_other(self, a):
        return a[::2]

    def empty_like(self, a):
        return self.xp.empty(a.shape, a.dtype)

    def sum(self, a, axes):
        return a.sum(axis=axes)

    def max(self, a, axis):
        return a.max(axis=axis)

    def mean(self, a, axis):
        return a.mean(axis=axis)

    def argmax(self, a, axis):
        return a.argmax(axis=axis)

    def take(self, a, indices, axis):
        return self.xp.take(a, indices, axis=axis)

    def scatter_add(self, a, rows, values):
        if self.gpu:
            import cupyx
            cupyx.scatter_add(a, rows, values)
        else:
            self.xp.add.at(a, rows, values)

    def put(self, a, places, values):
        a[places] = values

    def concatenate(self, arrays, axis):
        return self.xp.concatenate(arrays, axis)

    def stack(self, arrays, axis):
        return self.xp.stack(arrays, axis)

    def split_copy(self, a):
        return [part.copy() for part in self.xp.split(a, 4, 1)]

    def rand(self, n):
        return self.uniform(n) if self.gpu else self.generator().random(n, dtype="float32")

    def randn(self, n):
        return self.xp.random.standard_normal(n, dtype="float32") if self.gpu else \
            self.generator().standard_normal(n, dtype="float32")

    def generator(self):
        if not hasattr(self, "_generator"):
            self._generator = self.xp.random.default_rng(1)
        return self._generator

    def user_kernel(self):
        if not self.gpu:
            return None
        return self.xp.ElementwiseKernel("T a, T b, T c, T d", "T y", "y = a * b + c * d", "four")

    def cumsum(self, a, axis):
        return self.xp.cumsum(a, axis=axis)

    def sort(self, a):
        return self.xp.sort(a)

    def argsort(self, a):
        return self.xp.argsort(a) if self.gpu else self.xp.argsort(a, kind="stable")

    def fused_chain(self, chain):
        if not self.gpu:
            return chain
        return self.xp.fuse()(chain)


class Torch(Library):
    def __init__(self, gpu):
        super().__init__("PyTorch", gpu)
        import torch
        self.t = torch
        self.version = torch.__version__
        self.device = "cuda" if gpu else "cpu"
        if gpu:
            if not torch.cuda.is_available():
                raise RuntimeError("it finds no GPU")
            self.wait = torch.cuda.synchronize
        torch.set_grad_enabled(False)

    def uniform(self, *shape):
        return self.t.rand(*shape, device=self.device)

    def integers(self, n, high):
        return self.t.randint(0, high, (n,), device=self.device)

    def cast(self, a, dtype):
        return a.to(getattr(self.t, dtype))

    def empty(self, shape, dtype="float32"):
        return self.t.empty(tuple(shape), dtype=getattr(self.t, dtype), device=self.device)

    def copy(self, to, source):
        to.copy_(source)

    def add(self, a, b, out):
        self.t.add(a, b, out=out)

    def clip(self, a, low, high, out):
        self.t.clamp(a, low, high, out=out)

    def unary(self, name, a, out):
        getattr(self.t, name)(a, out=out)

    def binary(self, name, a, b, out):
        getattr(self.t, name)(a, b, out=out)

    def where(self, condition, a, b):
        return self.t.where(condition, a, b)

    def reverse(self, a):
        return None  # no negative strides

    def less(self, a, b):
        return a < b

    def permute(self, a, axes):
        return a.permute(axes)

    def every_other(self, a):
        return a[::2]

    def empty_like(self, a):
        return self.t.empty(a.shape, dtype=a.dtype, device=self.device)

    def sum(self, a, axes):
        return a.sum(axes)

    def max(self, a, axis):
        return a.max() if axis is None else a.amax(axis)

    def mean(self, a, axis):
        return a.mean(axis)

    def argmax(self, a, axis):
        return a.argmax(axis)

    def take(self, a, indices, axis):
        return self.t.index_select(a, axis, indices)

    def scatter_add(self, a, rows, values):
        a.index_add_(0, rows, values)

    def put(self, a, places, values):
        a.put_(places, values)

    def concatenate(self, arrays, axis):
        return self.t.cat(arrays, axis)

    def stack(self, arrays, axis):
        return self.t.stack(arrays, axis)

    def split_copy(self, a):
        return [part.clone(memory_format=self.t.contiguous_format) for part in self.t.chunk(a, 4, 1)]

    def rand(self, n):
        return self.t.rand(n, device=self.device)

    def randn(self, n):
        return self.t.randn(n, device=self.device)

    def user_kernel(self):
        return None

    def cumsum(self, a, axis):
        return self.t.cumsum(a.ravel() if axis is None else a, 0 if axis is None else axis)

    def sort(self, a):
        return self.t.sort(a)

    def argsort(self, a):
        return self.t.argsort(a, stable=True)

    def fused_chain(self, chain):
        return chain
