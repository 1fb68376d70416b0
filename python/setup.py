# SPDX-License-Identifier: Apache-2.0
"""setup.py - the wheel: configure and make, then the programs as scripts, the libraries as data of the package, and what
`swsim record` puts before those of a program in libexec, where the programs look for it.

SWSIM_CONFIGURE has more arguments for configure, such as --with-cuda. SWSIM_BUILD names a build folder that is used as it
is, SWSIM_STRIPPED that the linker has stripped what is built. PKG_CONFIG_PATH decides which libyaml, SQLite and zlib are
linked: build_wheel.sh puts static ones there.
"""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py
from setuptools.command.bdist_wheel import bdist_wheel
from distutils.command.build_scripts import build_scripts  # those of setuptools, which is imported above
from distutils.command.install_data import install_data

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parent
PROGRAMS, LIBRARIES = ("swsim", "swrun", "swcheck"), ("libswsim.so.0", "libswpipe.so.0")
LIBEXEC = "libexec/swsim"


def version():
    """The version that configure.ac has."""
    return re.search(r"AC_INIT\(\[swsim\], \[([^]]+)\]\)", (SOURCE / "configure.ac").read_text()).group(1)


def build():
    """The folder in which the programs and libraries are built."""
    given = os.environ.get("SWSIM_BUILD")
    if given:
        return pathlib.Path(given).resolve()
    folder = HERE / "build" / "native"
    folder.mkdir(parents=True, exist_ok=True)
    if not (SOURCE / "configure").exists():
        subprocess.run(["./autogen.sh"], cwd=SOURCE, check=True)
    if not (folder / "config.status").exists():
        subprocess.run([str(SOURCE / "configure"), "-q", *shlex.split(os.environ.get("SWSIM_CONFIGURE", ""))], cwd=folder,
                       check=True)
    subprocess.run(["make", f"-j{os.cpu_count()}", "-s"], cwd=folder, check=True)
    return folder


def copy_stripped(source, target):
    """Copy a program or a library, without what only a debugger reads."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if os.environ.get("SWSIM_STRIPPED"):
        shutil.copyfile(os.path.realpath(source), target)
    else:
        subprocess.run(["strip", "--strip-unneeded", "-o", str(target), os.path.realpath(source)], check=True)
    target.chmod(0o755)


class BuildNative(build_py):
    """The module, what generate.py makes, the libraries, TorchRec's plans."""

    def run(self):
        super().run()
        package, native = pathlib.Path(self.build_lib) / "swsim", build()
        subprocess.run([sys.executable, str(HERE / "generate.py"), str(SOURCE), str(package)], check=True)
        for name in LIBRARIES:
            copy_stripped(native / name, package / "lib" / name)
        shutil.copytree(SOURCE / "plans/torchrec", package / "plans/torchrec", dirs_exist_ok=True)


class BuildPrograms(build_scripts):
    """The programs as they are: no interpreter starts in front of them."""

    def run(self):
        native = build()
        for name in PROGRAMS:
            copy_stripped(native / name, pathlib.Path(self.build_dir) / name)

    def get_source_files(self):
        """None: the programs are built."""
        return []


class InstallRecorder(install_data):
    """What `swsim record` needs, below the folder that the programs' folder is in."""

    def run(self):
        native, target = build(), pathlib.Path(self.install_dir) / LIBEXEC
        copy_stripped(native / "libswrecord.so", target / "libswrecord.so")
        for library in sorted((native / "none").glob("lib*.so*")):
            copy_stripped(library, target / "none" / library.name)
        shutil.copytree(native / "none/python", target / "none/python", dirs_exist_ok=True,
                        ignore=shutil.ignore_patterns("__pycache__"))
        self.outfiles = [str(path) for path in target.rglob("*") if path.is_file()]

    def get_inputs(self):
        """None: all of it is built."""
        return []


class Wheel(bdist_wheel):
    """One wheel for every Python 3 of a platform: nothing in it is linked with an interpreter."""

    def finalize_options(self):
        super().finalize_options()
        self.root_is_pure = False

    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


class Native(Distribution):
    """A package with libraries, which auditwheel looks into."""

    def has_ext_modules(self):
        return True


setup(version=version(), distclass=Native, scripts=list(PROGRAMS), data_files=[(LIBEXEC, [])],
      cmdclass={"build_py": BuildNative, "build_scripts": BuildPrograms, "install_data": InstallRecorder,
                "bdist_wheel": Wheel})
