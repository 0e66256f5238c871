"""Records what Pillow and torchvision make of small image files.

    python record_image_decoding.py OUTPUT.json

Every picture is computed from a formula. Written are the files themselves (hexadecimal), the pixels
of the small ones as Pillow's ImageOps.exif_transpose and convert("RGB") give them, and boxes and
frames of the larger ones as torchvision's functional.resized_crop and Resize + CenterCrop give
them (bilinear, antialias, on Pillow images).
"""

import io
import json
import sys

import numpy as np
from PIL import Image, ImageOps
from torchvision import transforms
from torchvision.transforms import functional

SMALL = (37, 29)
LARGE = (150, 117)
OUTPUT_SIDE = 32
BOXES = [(0, 0, 150, 117), (3, 5, 70, 60), (80, 50, 70, 67), (41, 17, 20, 11), (149, 116, 1, 1),
         (33, 0, 17, 117), (0, 64, 150, 9)]


def picture(size, channels, levels=256):
    """Smooth slopes with an edge and a little noise, so that every mistake of a pixel shows."""
    width, height = size
    y, x = np.mgrid[0:height, 0:width].astype(np.int64)
    planes = []
    for c in range(channels):
        slope = (x * (5 - c) * 256 // width + y * (3 + c) * 256 // height) // 4
        noise = (x * 7919 + y * 104729 + c * 1299709) % 31
        edge = np.where((x - width // 2) ** 2 + (y - height // 2) ** 2 < (height // 3) ** 2, 90, 0)
        planes.append((slope + noise + edge) % 256 * levels // 256)
    return np.stack(planes, axis=-1)


def saved(image, kind, **options):
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()


def as_image(size, mode):
    channels = {"L": 1, "LA": 2, "RGB": 3, "RGBA": 4, "CMYK": 4}[mode]
    pixels = picture(size, channels).astype(np.uint8)
    return Image.fromarray(pixels[..., 0] if channels == 1 else pixels, mode)


def png_chunk(name, body):
    import zlib
    return (len(body).to_bytes(4, "big") + name + body +
            zlib.crc32(name + body).to_bytes(4, "big"))


def wide_png(channels, color_type):
    """16 bits a sample, which Pillow does not write for colour."""
    import zlib
    pixels = picture(SMALL, channels, 65536).astype(">u2")
    if channels == 1:
        pixels = pixels // 200  # many values below 256, many above
        pixels = pixels.astype(">u2")
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    head = (SMALL[0].to_bytes(4, "big") + SMALL[1].to_bytes(4, "big") +
            bytes([16, color_type, 0, 0, 0]))
    return (b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", head) +
            png_chunk(b"IDAT", zlib.compress(rows)) + png_chunk(b"IEND", b""))


def interlaced_png():
    """Adam7, which Pillow does not write either."""
    import zlib
    pixels = picture(SMALL, 3).astype(np.uint8)
    body = b""
    for left, top, right, down in [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4),
                                   (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]:
        for row in pixels[top::down, left::right]:
            body += b"\0" + row.tobytes()
    head = SMALL[0].to_bytes(4, "big") + SMALL[1].to_bytes(4, "big") + bytes([8, 2, 0, 0, 1])
    return (b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", head) +
            png_chunk(b"IDAT", zlib.compress(body)) + png_chunk(b"IEND", b""))


def small_files():
    rgb = as_image(SMALL, "RGB")
    gray = as_image(SMALL, "L")
    cmyk = saved(as_image(SMALL, "CMYK"), "JPEG", quality=90)
    marker = cmyk.index(b"Adobe")
    ycck = bytearray(cmyk)
    ycck[marker + 11] = 2  # the same samples, now said to be YCCK
    files = {
        "jpeg_444": saved(rgb, "JPEG", quality=90, subsampling=0),
        "jpeg_422": saved(rgb, "JPEG", quality=90, subsampling=1),
        "jpeg_420": saved(rgb, "JPEG", quality=90, subsampling=2),
        "jpeg_gray": saved(gray, "JPEG", quality=90),
        "jpeg_progressive": saved(rgb, "JPEG", quality=90, progressive=True),
        "jpeg_restarts": saved(rgb, "JPEG", quality=90, restart_marker_blocks=1),
        "jpeg_cmyk": cmyk,
        "jpeg_ycck": bytes(ycck),
        "jpeg_one_pixel": saved(rgb.crop((5, 5, 6, 6)), "JPEG"),
        "jpeg_one_row": saved(rgb.crop((0, 5, 37, 6)), "JPEG"),
        "jpeg_one_column": saved(rgb.crop((5, 0, 6, 29)), "JPEG"),
        "png_gray": saved(gray, "PNG"),
        "png_gray_1": saved(gray.point(lambda v: 255 * (v > 127)).convert("1"), "PNG"),
        "png_gray_alpha": saved(as_image(SMALL, "LA"), "PNG"),
        "png_palette": saved(rgb.quantize(16), "PNG"),
        "png_palette_transparent": saved(rgb.quantize(200), "PNG", transparency=3),
        "png_rgb": saved(rgb, "PNG"),
        "png_rgb_transparent": saved(rgb, "PNG", transparency=(0, 0, 0)),
        "png_rgba": saved(as_image(SMALL, "RGBA"), "PNG"),
        "png_gray_16": wide_png(1, 0),
        "png_gray_alpha_16": wide_png(2, 4),
        "png_rgb_16": wide_png(3, 2),
        "png_rgba_16": wide_png(4, 6),
        "png_interlaced": interlaced_png(),
        "png_one_pixel": saved(rgb.crop((5, 5, 6, 6)), "PNG"),
    }
    for orientation in range(1, 9):
        exif = Image.Exif()
        exif[0x0112] = orientation
        files[f"jpeg_orientation_{orientation}"] = saved(rgb, "JPEG", quality=90, subsampling=2,
                                                         exif=exif)
    return files


def large_files():
    rgb = as_image(LARGE, "RGB")
    exif = Image.Exif()
    exif[0x0112] = 6
    return {
        "jpeg_444": saved(rgb, "JPEG", quality=80, subsampling=0),
        "jpeg_422": saved(rgb, "JPEG", quality=80, subsampling=1),
        "jpeg_420": saved(rgb, "JPEG", quality=80, subsampling=2),
        "jpeg_420_progressive": saved(rgb, "JPEG", quality=80, subsampling=2, progressive=True),
        "jpeg_420_turned": saved(rgb, "JPEG", quality=80, subsampling=2, exif=exif),
        "jpeg_gray": saved(as_image(LARGE, "L"), "JPEG", quality=80),
    }


def upright(file):
    image = Image.open(io.BytesIO(file))
    image.load()
    # A turned image keeps its mode; what PNG says of EXIF is left alone.
    return (ImageOps.exif_transpose(image) if image.format == "JPEG" else image).convert("RGB")


def hexed(image):
    return np.asarray(image, dtype=np.uint8).tobytes().hex()


def main():
    records = {"small": [], "large": []}
    for name, file in small_files().items():
        image = upright(file)
        records["small"].append({"name": name, "file": file.hex(), "width": image.width,
                                 "height": image.height, "rgb": hexed(image)})
    frame = transforms.Compose([transforms.Resize((OUTPUT_SIDE * 8 + 6) // 7),
                                transforms.CenterCrop(OUTPUT_SIDE)])
    size = [OUTPUT_SIDE, OUTPUT_SIDE]
    for name, file in large_files().items():
        image = upright(file)
        record = {"name": name, "file": file.hex(), "width": image.width, "height": image.height,
                  "frame": hexed(frame(image)), "crops": []}
        for left, top, width, height in BOXES if name == "jpeg_420" else BOXES[1:3]:
            left, top = min(left, image.width - 1), min(top, image.height - 1)
            width, height = min(width, image.width - left), min(height, image.height - top)
            crop = functional.resized_crop(image, top, left, height, width, size)
            record["crops"].append({"box": [left, top, width, height], "rgb": hexed(crop)})
        records["large"].append(record)
    boxes = []
    for width, height in [(10, 1000), (1000, 10), (1, 90), (333, 7), (5, 110)]:
        top, left, box_height, box_width = transforms.RandomResizedCrop.get_params(
            Image.new("L", (width, height)), [0.08, 1.0], [3 / 4, 4 / 3])
        boxes.append({"image": [width, height], "box": [left, top, box_width, box_height]})
    records["middle_boxes"] = boxes  # sizes that no random shape fits into
    with open(sys.argv[1], "w", encoding="ascii") as output:
        json.dump(records, output, indent=0)
        output.write("\n")


if __name__ == "__main__":
    main()
