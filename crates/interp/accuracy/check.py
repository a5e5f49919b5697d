"""Measures the scalar functions against mpmath and writes docs/accuracy.md.

Usage: cargo build --release -p warpforge-interp --example evaluate
       python crates/interp/accuracy/check.py PATH/TO/evaluate [docs/accuracy.md]     (needs: pip install mpmath)
"""

import math
import random
import struct
import subprocess
import sys

import mpmath as mp

mp.mp.prec = 2600
random.seed(20)

MAX = 1.7976931348623157e308
TINY = 5e-324


def bits(x):
    return struct.unpack("<q", struct.pack("<d", x))[0]


def ordinal(x):
    b = bits(x)
    return b if b >= 0 else -(b & 0x7FFFFFFFFFFFFFFF)


def log_uniform(low, high):
    return math.exp(random.uniform(math.log(low), math.log(high)))


def wide_range():
    """Any finite magnitude, with a bias to the ordinary ones and to the edges."""
    kind = random.random()
    if kind < 0.35:
        value = log_uniform(1e-3, 1e3)
    elif kind < 0.6:
        value = log_uniform(1e-20, 1e20)
    elif kind < 0.9:
        value = log_uniform(1e-307, 1e308)
    else:
        value = random.choice([1.0, 1 + 2**-52, 1 - 2**-53, 0.5, 2.0, MAX, 2.3e-308, TINY, 1e-310, math.pi / 2, math.e])
    return random.choice([-1, 1]) * value


def moderate(low, high):
    return lambda: random.uniform(low, high) if random.random() < 0.7 else random.choice([-1, 1]) * log_uniform(1e-12, max(abs(low), abs(high)))


def positive():
    return abs(wide_range())


def unit():
    value = random.choice([random.uniform(0, 1), log_uniform(1e-300, 1), 1 - log_uniform(1e-16, 1)])
    return random.choice([-1, 1]) * min(value, 1.0)


def cube_root(z):
    return mp.exp(mp.log(z) / 3)


def real_cbrt(x):
    return mp.sign(x) * mp.cbrt(abs(x))


def i_e(order):
    return lambda x: mp.besseli(order, x) * mp.exp(-abs(x))


COMPLEX = {
    "cexp": mp.exp, "cexpm1": lambda z: mp.exp(z) - 1, "clog": mp.log, "clog1p": lambda z: mp.log(1 + z),
    "csqrt": mp.sqrt, "crsqrt": lambda z: 1 / mp.sqrt(z), "ccbrt": cube_root,
    "csin": mp.sin, "ccos": mp.cos, "ctan": mp.tan, "csinh": mp.sinh, "ccosh": mp.cosh, "ctanh": mp.tanh,
    "casin": mp.asin, "cacos": mp.acos, "catan": mp.atan, "casinh": mp.asinh, "cacosh": mp.acosh, "catanh": mp.atanh,
    "csign": lambda z: z / abs(z), "clogistic": lambda z: 1 / (1 + mp.exp(-z)),
}
# Exponentials of parts beyond this overflow or underflow whatever the other part is.
BOUNDED = {"cexp": 800, "cexpm1": 800, "csinh": 800, "ccosh": 800, "ctanh": 400, "clogistic": 800,
           "csin": 800, "ccos": 800, "ctan": 400}
REAL = {
    "exp": (mp.exp, [moderate(-745, 709)]), "expm1": (mp.expm1, [moderate(-50, 709)]),
    "log": (mp.log, [positive]), "log1p": (mp.log1p, [lambda: positive() if random.random() < 0.6 else unit() * 0.999]),
    "rsqrt": (lambda x: 1 / mp.sqrt(x), [positive]), "cbrt": (real_cbrt, [wide_range]),
    "sin": (mp.sin, [wide_range]), "cos": (mp.cos, [wide_range]), "tan": (mp.tan, [wide_range]),
    "sinh": (mp.sinh, [moderate(-710, 710)]), "cosh": (mp.cosh, [moderate(-710, 710)]),
    "tanh": (mp.tanh, [moderate(-30, 30)]),
    "asin": (mp.asin, [unit]), "acos": (mp.acos, [unit]), "atan": (mp.atan, [wide_range]),
    "asinh": (mp.asinh, [wide_range]), "acosh": (mp.acosh, [lambda: 1 + positive() if random.random() < 0.8 else 1 + log_uniform(1e-15, 1)]),
    "atanh": (mp.atanh, [unit]), "logistic": (lambda x: 1 / (1 + mp.exp(-x)), [moderate(-740, 740)]),
    "atan2": (mp.atan2, [wide_range, wide_range]),
    "pow": (mp.power, [positive, moderate(-40, 40)]),
    "erf": (mp.erf, [moderate(-6, 6)]), "erfc": (mp.erfc, [moderate(-6, 26)]),
    "erf_inv": (mp.erfinv, [lambda: unit() * 0.9999999]),
    "lgamma": (lambda x: mp.log(abs(mp.gamma(x))), [moderate(-60, 170)]),
    "digamma": (mp.digamma, [moderate(-60, 1000)]),
    "polygamma": (lambda n, x: mp.polygamma(int(n), x), [lambda: float(random.randint(1, 12)), lambda: random.uniform(0.05, 60)]),
    "zeta": (mp.zeta, [lambda: random.uniform(1.01, 30), lambda: random.uniform(0.05, 60)]),
    "bessel_i0e": (i_e(0), [moderate(-300, 300)]), "bessel_i1e": (i_e(1), [moderate(-300, 300)]),
}
SLOW = {"lgamma", "digamma", "polygamma", "zeta", "bessel_i0e", "bessel_i1e", "erf_inv", "erf", "erfc"}


def cases(count):
    for name in COMPLEX:
        bound = BOUNDED.get(name)
        for _ in range(count):
            x, y = wide_range(), wide_range()
            if name in ("csin", "ccos", "ctan") and abs(y) > bound:
                y = math.fmod(y, bound)
            elif bound and name not in ("csin", "ccos", "ctan") and abs(x) > bound:
                x = math.fmod(x, bound)
            if random.random() < 0.1 and name in ("clog", "casin", "cacos", "cacosh", "catanh"):
                angle = random.uniform(0, 2 * math.pi)
                x, y = math.cos(angle), math.sin(angle)
            yield name, (x, y)
    for _ in range(count):
        yield "cabs", (wide_range(), wide_range())
        yield "cdiv", tuple(wide_range() for _ in range(4))
        yield "cpow", (moderate(-20, 20)(), moderate(-20, 20)(), moderate(-10, 10)(), moderate(-10, 10)())
    for name, (_, draw) in REAL.items():
        for _ in range(count // 4 if name in SLOW else count):
            yield name, tuple(f() for f in draw)


def exact(name, x):
    if name == "cabs":
        return [abs(mp.mpc(*x))]
    if name in ("cdiv", "cpow"):
        a, b = mp.mpc(x[0], x[1]), mp.mpc(x[2], x[3])
        z = a / b if name == "cdiv" else mp.exp(b * mp.log(a))
        return [z.real, z.imag]
    if name in COMPLEX:
        z = mp.mpc(COMPLEX[name](mp.mpc(*x)))
        return [z.real, z.imag]
    with mp.workprec(400 if name in SLOW else mp.mp.prec):
        return [mp.mpf(REAL[name][0](*[mp.mpf(v) for v in x]))]


def to_double(value):
    with mp.workprec(53):
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf


def main():
    program = sys.argv[1]
    samples = list(cases(int(sys.argv[3]) if len(sys.argv) > 3 else 600))
    text = "".join(f"{n} {' '.join('%016x' % (bits(v) & (2**64 - 1)) for v in x)}\n" for n, x in samples)
    lines = subprocess.run([program], input=text, capture_output=True, text=True, check=True).stdout.splitlines()
    worst = {}
    for (name, x), line in zip(samples, lines, strict=True):
        actual = [struct.unpack("<d", struct.pack("<Q", int(w, 16)))[0] for w in line.split()]
        error = 0
        for a, e in zip(actual, exact(name, x), strict=True):
            e = to_double(e)
            error = max(error, 2**63 if math.isnan(a) else abs(ordinal(a) - ordinal(e)))
        count, old, at = worst.get(name, (0, -1, None))
        worst[name] = (count + 1, error, x) if error > old else (count + 1, old, at)
    rows = [f"| `{n}` | {c} | {e} | {', '.join(map(repr, at))} |" for n, (c, e, at) in worst.items()]
    page = (
        "# Accuracy of the reference's scalar functions\n\n"
        "Distance in units in the last place of binary64 from the correctly rounded value, by mpmath at 2600 bits, over\n"
        "random arguments of ordinary size, of every size, and at the edges (largest, smallest, subnormal, next to one).\n"
        "Complex functions, whose names start with `c`, are judged by the worse of their parts. Narrower types are\n"
        "computed in binary64 and rounded once. Written by `crates/interp/accuracy/check.py`.\n\n"
        "| function | samples | worst, ULP | at |\n| --- | ---: | ---: | --- |\n" + "\n".join(rows) + "\n"
    )
    if len(sys.argv) > 2 and sys.argv[2] != "-":
        with open(sys.argv[2], "w") as file:
            file.write(page)
    else:
        print(page)


main()
