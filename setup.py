"""Builds the extension vpps._vpps: what cffi makes of the public headers, and the library's own objects in it.

Without VPPS_LIBRARY the library's sources are compiled here, by a C compiler alone: python/standins has what they need of
zlib and libzstd. VPPS_LIBRARY=build/libvpps.a takes the archive that make has built.
"""
import os
import re
import shlex
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
HEADER = (ROOT / "include/vpps.h").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
OBJECTS = sorted(ROOT.glob("src/**/*.c"))


def version() -> str:
    return re.search(r'#define VPPS_VERSION "(.*)"', HEADER)[1]


def variable(name: str) -> list:
    """The value of a variable of the Makefile, where it is not under a sanitizer."""
    value = re.search(rf"^{name}\s*:?=\s*(.*)$", MAKEFILE, re.MULTILINE)
    return re.sub(r"\$\(if \$\(SANITIZE\),[^,]*,([^)]*)\)", r"\1", value[1]).split() if value else []


def compiler() -> list:
    return shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")


# ---------------------------------------------------------------- what cffi is told

def declarations(work: Path) -> str:
    """The public headers without comments, macros and the system's headers, of which cffi knows the types."""
    fake = work / "fake"
    fake.mkdir(parents=True, exist_ok=True)
    for name in ("stdbool", "stddef", "stdint", "stdio"):
        (fake / f"{name}.h").write_text("")
    text = subprocess.run([*compiler(), "-E", "-P", "-nostdinc", "-undef", f"-I{fake}", f"-I{ROOT}/include", "-xc", "-"],
                          input='#include "vpps_data.h"\n#include "vpps_export.h"\n', capture_output=True, text=True, check=True).stdout
    return (text + (ROOT / "python/glue.h").read_text(encoding="utf-8") +
            "extern \"Python\" void glue_log(void *context, const char *line);\n")


def keep_lock(binding: str, functions: set) -> str:
    """What cffi generates gives the interpreter's lock away around every call; without that around calls of these functions."""
    call = re.compile(r" *Py_BEGIN_ALLOW_THREADS\n(.*\n *\{ (?:result = )?(\w+)\(.*\n.*\n) *Py_END_ALLOW_THREADS\n")
    kept = set()

    def without(m: re.Match) -> str:
        if m[2] not in functions:
            return m[0]
        kept.add(m[2])
        return m[1]

    result = call.sub(without, binding)
    if kept != functions:  # slower calls, and threads must keep off each other's graphs
        print(f"warning: cffi's code has another form: these calls give the lock away: {sorted(functions - kept)}", file=sys.stderr)
    return result


def write_binding(work: Path) -> Path:
    from cffi import FFI

    cdef = declarations(work)
    ffi = FFI()
    ffi.cdef(cdef)
    ffi.set_source("vpps._vpps", '#include "glue.c"\n#include "apply.h"\n#include "dlpack.h"\n#include "whole.h"\n')
    source = work / "_vpps.c"
    ffi.emit_c_code(str(source))
    # What looks at a graph, or adds to it, is done sooner than the lock is given away; and with it no two threads change one graph.
    of_graphs = set(re.findall(r"\b(\w+)\s*\((?:const )?vpps_graph \*\w", cdef)) | {"glue_python_apply", "glue_dlpack", "glue_capsule"}
    source.write_text(keep_lock(source.read_text(encoding="utf-8"), of_graphs), encoding="utf-8")
    return source


# ---------------------------------------------------------------- the library

def commands(out: Path) -> list:
    """Every object of the library with the command that makes it, as the Makefile would, -O3 throughout."""
    common = [*compiler(), "-std=c11", "-D_GNU_SOURCE=", "-O3", "-g0", "-fPIC", "-fvisibility=hidden", "-pthread",
              f"-I{ROOT}/python/standins", f"-I{ROOT}/include", f"-I{ROOT}/src", "-c"]
    made = []

    def add(source: Path, flags: list, suffix: str = "") -> None:
        name = out / (str(source.relative_to(ROOT)).replace("/", "_") + suffix + ".o")
        made.append((name, [*common, *flags, str(source), "-o", str(name)]))

    kernels = ROOT / variable("KERNELS")[0]
    for source in OBJECTS:
        if source != kernels and "src/cli/" not in str(source):
            add(source, [])
    for folder in ("codegen", "export"):
        add(ROOT / f"src/{folder}/templates.S", [])
    for isa in {"x86_64": ["generic", "avx2", "avx512"], "aarch64": ["neon"]}.get(os.uname().machine, ["generic"]):
        add(kernels, [*variable("KERNEL_FLAGS"), *variable(f"FLAGS_{isa}"), f"-DVPPS_KERNELS_ISA={isa}"], f"_{isa}")
    return made


def compile_library(out: Path) -> list:
    out.mkdir(parents=True, exist_ok=True)
    made = commands(out)

    def run(command: list) -> None:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)}\n{done.stderr}")

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(run, [command for _, command in made]))
    return [str(name) for name, _ in made]


class BuildExtension(build_ext):
    def build_extension(self, ext: Extension) -> None:
        work = Path(self.build_temp).resolve()
        work.mkdir(parents=True, exist_ok=True)
        ext.sources = [os.path.relpath(write_binding(work))]
        library = os.environ.get("VPPS_LIBRARY")
        if library:
            ext.extra_objects, ext.libraries = [library], [x[2:] for x in variable("LIBS")]
        else:
            ext.extra_objects = compile_library(work / "library")
        ext.depends = ext.extra_objects
        super().build_extension(ext)


class LimitedWheel(bdist_wheel):
    """One wheel for every CPython from 3.9 on: cffi's modules use the limited API."""

    def finalize_options(self) -> None:
        self.py_limited_api = "cp39"
        super().finalize_options()


setup(
    version=version(),
    cmdclass={"build_ext": BuildExtension, "bdist_wheel": LimitedWheel},
    ext_modules=[Extension("vpps._vpps", [], include_dirs=["include", "python", "src"], py_limited_api=True,
                           define_macros=[("Py_LIMITED_API", "0x03090000")],
                           extra_compile_args=["-O2", "-std=c11", "-fvisibility=hidden"],
                           extra_link_args=["-pthread", "-Wl,--as-needed", "-Wl,--exclude-libs,ALL"],
                           libraries=["dl", "m"])],
)
