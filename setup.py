"""Builds the two C extensions where there is a compiler: the CPU plugin's, and short ways through the frontend."""

import os
import runpy
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

HERE = "plugins/tensorcore_cpu/native"
SHORTCUTS = "tensorcore/shortcuts"

_own = runpy.run_path(f"{HERE}/flags.py")
INSTRUCTION_SETS = _own["INSTRUCTION_SETS"]
FLAGS = [*_own["FLAGS"], "-MMD"]


def sources(folder):
    """The C files of a folder, the largest first: begun last, it would leave the other processors waiting."""
    found = [f"{folder}/{name}" for name in os.listdir(folder) if name.endswith(".c")]
    return sorted(found, key=lambda name: (-os.path.getsize(name), name))


def parts():
    """What the extension is made of besides its own sources: a change of one of them is a reason to build again."""
    headers = [f"{folder}/{name}" for folder in (HERE, f"{HERE}/loops") for name in os.listdir(folder)]
    return [
        *sorted(name for name in headers if name.endswith(".h")),
        *sources(f"{HERE}/loops"),
        "setup.py",
        f"{HERE}/flags.py",
    ]


def by_many(compiler, compile, force, sources, **options):
    """The objects of `sources`, one run of the compiler for each that changed, or for all by `force` (as other flags want it).

    Each processor has one at a time.
    """

    def one(source):
        made = compiler.object_filenames([source], output_dir=options["output_dir"])
        return made if not force and is_fresh(made[0]) else compile([source], **options)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return [made for objects in pool.map(one, sources) for made in objects]


def is_fresh(made):
    """Whether an object is younger than this file and all that it was made of, which the compiler wrote down (-MMD)."""
    try:
        with open(os.path.splitext(made)[0] + ".d") as file:
            parts = file.read().partition(":")[2].replace("\\\n", " ").split()
        return os.path.getmtime(made) > max(map(os.path.getmtime, ["setup.py", *parts]))
    except OSError:
        return False


class BuildNative(build_ext):
    """Compiles the plugin's loops for each instruction set and links all of them into its one extension."""

    def build_extension(self, extension):
        built, made_of = self.library(extension), [*extension.sources, *extension.depends]
        if not self.force and os.path.exists(built) and os.path.getmtime(built) > max(map(os.path.getmtime, made_of)):
            return
        flags = FLAGS + os.environ.get("TENSORCORE_NATIVE_FLAGS", "").split()
        extension.extra_compile_args = flags
        if not extension.name.startswith("tensorcore_cpu"):
            super().build_extension(extension)
            return
        self.compiler.compile = partial(by_many, self.compiler, self.compiler.compile, self.force)
        extension.extra_objects = [
            made
            for name, own in INSTRUCTION_SETS.items()
            for made in self.compiler.compile(
                sources(f"{HERE}/loops"),
                output_dir=os.path.join(self.build_temp, name),
                macros=[("NATIVE_SUFFIX", name)],
                extra_postargs=flags + own,
                depends=extension.depends,
            )
        ]
        super().build_extension(extension)

    def library(self, extension):
        """Where to look for a finished one. An editable install has it beside its sources, and starts in an empty folder."""
        if not self.editable_mode:
            return self.get_ext_fullpath(extension.name)
        package, _, module = extension.name.rpartition(".")
        return os.path.join(
            self.get_finalized_command("build_py").get_package_dir(package), self.get_ext_filename(module)
        )


def extensions():
    """Both extensions; none where NumPy's headers are missing or the compiler is not one that knows GCC's vectors."""
    try:
        import numpy
    except ImportError:
        return []
    if sys.platform == "win32":
        return []
    return [
        Extension(
            "tensorcore.shortcuts._shortcuts",
            sources(SHORTCUTS),
            include_dirs=[numpy.get_include()],
            depends=[f"{SHORTCUTS}/shortcuts.h", "setup.py"],
            extra_link_args=os.environ.get("TENSORCORE_NATIVE_FLAGS", "").split(),
            optional=True,
        ),
        Extension(
            "tensorcore_cpu.native._native",
            sources(HERE),
            include_dirs=[numpy.get_include()],
            depends=parts(),
            libraries=["m", "dl"],
            extra_link_args=["-pthread", *os.environ.get("TENSORCORE_NATIVE_FLAGS", "").split()],
            optional=True,
        ),
    ]


setup(ext_modules=extensions(), cmdclass={"build_ext": BuildNative})
