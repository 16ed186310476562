"""Ends of gradients, periods, phases, polynomials, pieces, packed bits, windows."""
import numpy as np

from values import INTS, Exact, is_float, near, same_value, unit, wide

NARROW = ["float32", "float64"]


def float_of(x):
    return x.dtype if is_float(x.dtype) else "float64"


def close(result, dtype, scale=64):
    result = np.asarray(result)
    slack = scale * unit(dtype) * np.maximum(1, np.abs(np.nan_to_num(result)))
    return near(result, np.broadcast_to(slack, result.shape), dtype)


def gradient_edges(g):
    x = g.array(g.dtype(NARROW + ["int32"]), g.shape(1), "small")
    axis = g.axis(x.a.ndim)
    n = x.a.shape[axis]
    args, params = [x], {"axis": axis}
    spacing = params["spacing"] = g.pick([1.0, 0.5, 3.0])
    if g.chance(0.4):
        spacing = np.cumsum(g.rng.integers(1, 5, n)).astype(np.float64)
        args.append(g.array("float64", [n], layout="contiguous", values=lambda count: spacing[:count]))
    with g.call("gradient_edges", args, params) as call:
        result = np.gradient(x.a.astype(np.float64), spacing, axis=axis, edge_order=2)
        call.expect(close(result, float_of(x)))


def interp_period(g):
    n = g.integer(1, 12)
    points = g.rng.permutation(np.arange(n)) / 2 + g.integer(-9, 9)
    xp = g.array("float64", [n], layout="contiguous", values=lambda count: points[:count])
    fp = g.array(g.dtype(["float32", "float64", "int32"]), [n], "small", layout="contiguous")
    x = g.array("float64", g.shape(), "small")
    period = g.pick([8.0, -8.0, 6.5])
    call = g.call("interp_period", [x, xp, fp], {"period": period})
    call.expect(close(np.interp(x.a, xp.a, fp.a, period=period), "float64"))


def ediff1d(g):
    x = g.array(g.dtype(INTS + NARROW), g.shape(), g.pick(["any", "small"]), specials=False)
    end, begin = ([g.integer(0, 9) for _ in range(g.integer(0, 2))] for _ in range(2))
    call = g.call("ediff1d", [x], {"end": end, "begin": begin})
    call.expect(Exact(np.ediff1d(x.a, np.asarray(end, x.a.dtype), np.asarray(begin, x.a.dtype)),
                      x.dtype))


def unwrap(g):
    # Quarters: every sum is exact, so that the same jumps are seen.
    x = g.array(g.dtype(NARROW), g.shape(1), values=lambda n: g.rng.integers(-40, 40, n) / 4)
    axis = g.axis(x.a.ndim)
    params = {"axis": axis, "period": g.pick([4.0, 6.0])}
    if g.chance(0.4):
        params["discont"] = g.pick([1.0, 3.5, 5.0])
    call = g.call("unwrap", [x], params)
    more = {"discont": params["discont"]} if "discont" in params else {}
    call.expect(same_value(np.unwrap(x.a, axis=axis, period=params["period"], **more), x.dtype))


def vander(g):
    x = g.array(g.dtype(INTS + NARROW), [g.integer(0, 6)], "small")
    columns, increasing = g.integer(0, 5), g.chance(0.5)
    call = g.call("vander", [x], {"columns": columns, "increasing": increasing})
    result = np.vander(x.a, columns, increasing)
    call.expect(Exact(result))


def polyval(g):
    dtype = g.dtype([*INTS, "float64"])
    profile = "small" if is_float(dtype) else g.pick(["any", "small"])
    p = g.array(dtype, [g.integer(0, 6)], profile)
    x = g.array(dtype, g.shape(), profile)
    call = g.call("polyval", [p, x])
    call.expect(same_value(np.asarray(np.polyval(p.a, x.a)), dtype))


def piecewise(g):
    x = g.array(g.dtype(INTS + NARROW), g.shape(), "small")
    masks = [g.array("bool", x.a.shape) for _ in range(g.integer(1, 3))]
    count = len(masks) + (1 if g.chance(0.5) else 0)
    numbers = [g.integer(0, 9) for _ in range(count)]
    doubled = g.chance(0.5)
    call = g.call("piecewise", [x, *masks], {"numbers": numbers, "doubled": doubled})
    pieces = list(numbers)
    if doubled:
        pieces[0] = lambda part: part + part
    call.expect(Exact(np.asarray(np.piecewise(x.a, [m.a for m in masks], pieces)), x.dtype))


def packbits(g):
    x = g.array(g.dtype(["bool", *INTS]), g.shape(1), "small")
    axis = g.axis(x.a.ndim) if g.chance(0.6) else None
    order = g.pick(["big", "little"])
    call = g.call("packbits", [x], {"axis": axis, "order": order})
    call.expect(Exact(np.packbits(x.a != 0, axis, order)))


def unpackbits(g):
    x = g.array("uint8", g.shape(1), "any")
    axis = g.axis(x.a.ndim) if g.chance(0.6) else None
    params = {"axis": axis, "order": g.pick(["big", "little"])}
    if x.a.size and g.chance(0.5):  # NumPy leaves the result of an empty array as it finds it
        params["count"] = g.pick([0, 5, 12, -3])
    with g.call("unpackbits", [x], params) as call:
        call.expect(Exact(np.unpackbits(x.a, axis, params.get("count"), params["order"])))


def trim_zeros(g):
    x = g.array(g.dtype(INTS), [g.integer(0, 9)], values=lambda n: g.rng.integers(0, 2, n))
    ends = g.pick(["fb", "f", "b"])
    call = g.call("trim_zeros", [x], {"ends": ends})
    call.expect(Exact(np.asarray(np.trim_zeros(x.a, ends)), x.dtype))


def special(g):
    name = g.pick(["sinc", "fix", "isposinf", "isneginf"])
    x = g.array(g.dtype(NARROW), g.shape(), "small", specials=name != "sinc")
    call = g.call("special", [x], {"name": name})
    if name == "sinc":
        call.expect(close(np.sinc(x.a.astype(wide(x.dtype))), x.dtype))
    else:
        result = np.asarray(getattr(np, name)(x.a))
        call.expect(same_value(result, x.dtype) if name == "fix" else Exact(result))


def float_power(g):
    shape = g.shape()
    x, y = (g.array(g.dtype(["int32", "int64", "float32"]), g.part_of_broadcast(shape), "positive")
            for _ in range(2))
    call = g.call("float_power", [x, y])
    call.expect(close(np.float_power(x.a, y.a), "float64"))


def window(g):
    name, n = g.pick(["bartlett", "hanning", "hamming", "blackman"]), g.integer(0, 40)
    g.call("window", [], {"name": name, "n": n}).expect(
        near(getattr(np, name)(n), np.full(n, 1e-14), "float64"))


def routines():
    return {
        "gradient_edges": (2, gradient_edges),
        "interp_period": (1, interp_period),
        "ediff1d": (1, ediff1d),
        "unwrap": (1, unwrap),
        "vander": (1, vander),
        "polyval": (1, polyval),
        "piecewise": (2, piecewise),
        "packbits": (1, packbits),
        "unpackbits": (1, unpackbits),
        "trim_zeros": (1, trim_zeros),
        "special": (1, special),
        "float_power": (1, float_power),
        "window": (1, window),
    }
