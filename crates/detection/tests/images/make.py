"""Writes the small JPEGs of this folder and, as PPM, the pixels that PIL decodes them to.

Made with Pillow 13.0.0 and libjpeg-turbo 3.2.0; the images are of the seed 0 and belong to this project.
"""

import pathlib
import random

from PIL import Image

FOLDER = pathlib.Path(__file__).parent


def picture(width: int, height: int) -> Image.Image:
    """Smooth colours with some noise, so that all coefficients and both signs appear."""
    draw = random.Random(0)
    image = Image.new("RGB", (width, height))
    for y in range(height):
        for x in range(width):
            base = (x * 255 // width, y * 255 // height, (x + y) * 9 % 256)
            image.putpixel((x, y), tuple(max(0, min(255, value + draw.randint(-40, 40))) for value in base))
    return image


def save(name: str, image: Image.Image, **options: object) -> None:
    image.save(FOLDER / f"{name}.jpg", **options)
    Image.open(FOLDER / f"{name}.jpg").convert("RGB").save(FOLDER / f"{name}.ppm")


def main() -> None:
    image = picture(19, 21)
    save("baseline-420", image, quality=85, subsampling=2)
    save("baseline-422", image, quality=85, subsampling=1)
    save("baseline-444", image, quality=95, subsampling=0)
    save("restarts", picture(40, 21), quality=60, subsampling=2, restart_marker_blocks=1)
    save("progressive", image, quality=85, subsampling=2, progressive=True)
    save("grey", image.convert("L"), quality=85)
    save("cmyk", image.convert("CMYK"), quality=85)
    save("narrow", picture(3, 9), quality=85, subsampling=2)
    save("pixel", picture(1, 1), quality=85)
    exif = Image.Exif()
    exif[0x0112] = 6
    save("rotated", image, quality=85, exif=exif)


if __name__ == "__main__":
    main()
