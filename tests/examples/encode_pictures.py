#!/usr/bin/env python3
"""Encodes small PNG and JPEG files of each kind, and what Pillow decodes from them, for the tests of
examples/common/decoding.h.

usage: encode_pictures.py FILE.npz    the bytes of each file as NAME, its pixels as NAME.rgb

PNG files come from the encoder below, for Pillow writes neither interlaced ones nor all depths.
"""
import io
import struct
import sys
import zlib

import numpy as np
from PIL import Image

HEIGHT, WIDTH = 7, 11
GRAY, RGB, PALETTE, GRAY_ALPHA, RGBA = 0, 2, 3, 4, 6
CHANNELS = {GRAY: 1, RGB: 3, PALETTE: 1, GRAY_ALPHA: 2, RGBA: 4}
DEPTHS = {GRAY: (1, 2, 4, 8, 16), RGB: (8, 16), PALETTE: (1, 2, 4, 8), GRAY_ALPHA: (8, 16), RGBA: (8, 16)}
# Of the first row and column, and the distances of the others, of Adam7's passes.
PASSES = ((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1))


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def packed_rows(samples, depth):
    """The rows of samples (height, width, channels), each behind its filter type, which is none."""
    bits = (samples.reshape(len(samples), -1, 1) >> np.arange(depth - 1, -1, -1)) & 1
    rows = np.packbits(bits.reshape(len(samples), -1).astype(np.uint8), axis=1)
    return b"".join(b"\0" + row.tobytes() for row in rows)


def png(samples, depth, kind, interlaced=False, ancillary=()):
    parts = [samples[y::dy, x::dx] for y, x, dy, dx in PASSES] if interlaced else [samples]
    pixels = b"".join(packed_rows(part, depth) for part in parts if part.size > 0)
    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, depth, kind, 0, 0, interlaced)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + b"".join(chunk(*c) for c in ancillary) +
            chunk(b"IDAT", zlib.compress(pixels, 9)) + chunk(b"IEND", b""))


def png_files(random):
    for kind, depths in DEPTHS.items():
        for depth in depths:
            samples = random.integers(0, 2**depth, (HEIGHT, WIDTH, CHANNELS[kind]))
            colours = random.integers(0, 256, 3 * 2**min(depth, 8), dtype=np.uint8).tobytes()
            palette = [(b"PLTE", colours)] if kind == PALETTE else []
            # A gamma, the bits that count, and one colour or the first entries transparent.
            first = samples[0, 0].astype(">u2").tobytes()
            sbit = bytes([1] * (3 if kind == PALETTE else CHANNELS[kind]))
            colour = [(b"gAMA", struct.pack(">I", 100000)), (b"sBIT", sbit)]
            trns = [(b"tRNS", b"\0\x80" if kind == PALETTE else first)] if kind in (GRAY, RGB, PALETTE) else []
            name = f"png-{kind}-{depth}"
            yield name, png(samples, depth, kind, False, palette)
            yield name + "-interlaced", png(samples, depth, kind, True, colour + palette + trns)


def jpeg_files(random):
    y, x = np.mgrid[:19, :23]
    smooth = np.stack([6 * y + 5 * x, 250 - 11 * x, 13 * y], 2) + random.integers(0, 16, (19, 23, 1))
    rgb = Image.fromarray(smooth.clip(0, 255).astype(np.uint8))
    black = Image.fromarray((9 * y + 5 * x).astype(np.uint8))
    cmyk = Image.merge("CMYK", rgb.convert("CMYK").split()[:3] + (black,))

    def encoded(image, **options):
        file = io.BytesIO()
        image.save(file, "JPEG", quality=85, **options)
        return file.getvalue()

    exif = Image.Exif()
    exif[0x0112] = 6  # orientation: turn by 90 degrees
    yield "jpeg-gray", encoded(rgb.convert("L"))
    yield "jpeg-444", encoded(rgb, subsampling=0)
    yield "jpeg-422", encoded(rgb, subsampling=1)
    yield "jpeg-420-turned", encoded(rgb, subsampling=2, exif=exif)
    yield "jpeg-420-progressive", encoded(rgb, subsampling=2, progressive=True)
    yield "jpeg-rgb", encoded(rgb, keep_rgb=True)
    adobe = encoded(cmyk)
    at = adobe.index(b"\xff\xee")  # the marker with the byte that says YCCK
    yield "jpeg-cmyk", adobe
    yield "jpeg-ycck", adobe[:at + 15] + b"\2" + adobe[at + 16:]
    yield "jpeg-cmyk-without-marker", adobe[:at] + adobe[at + 16:]


def decoded(data):
    image = Image.open(io.BytesIO(data))
    if image.mode != "I;16":
        return np.asarray(image.convert("RGB"))
    # Pillow cuts gray numbers of 16 bits off at 255, but takes the upper 8 of coloured ones, as
    # OpenCV does of both.
    return np.repeat((np.asarray(image) >> 8).astype(np.uint8)[..., None], 3, 2)


def main():
    random = np.random.default_rng(1)
    entries = {}
    for files in (png_files, jpeg_files):
        for name, data in files(random):
            entries[name] = np.frombuffer(data, np.uint8)
            entries[name + ".rgb"] = decoded(data)
    np.savez_compressed(sys.argv[1], **entries)


main()
