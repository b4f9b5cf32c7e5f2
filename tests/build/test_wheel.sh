#!/usr/bin/env bash
# The wheel: pip builds it in an environment that has nothing, auditwheel finds nothing that is not manylinux's, and it works where it is
# installed. A minute or two.
# shellcheck source=tests/build/stage.sh
. "$(dirname "$0")/stage.sh"

python=$(tools/python_env.sh) || { skip "the wheel" "no environment with packages from the index"; summary; exit; }
check "an environment without packages" "$python" -m venv --clear "$work/build"
check "auditwheel" "$work/build/bin/pip" --quiet --disable-pip-version-check install auditwheel
git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$work" 2> /dev/null || cp -r include src python doc Makefile pyproject.toml setup.py "$work"
check "setuptools" "$work/build/bin/pip" --quiet --disable-pip-version-check install 'setuptools>=77' cffi
sources() { (cd "$work" && "$work/build/bin/python" setup.py -q sdist -d "$work/sources"); }
check "an archive of the sources" sources
build() { (cd "$work/wheels" && "$work/build/bin/pip" --quiet --disable-pip-version-check wheel --no-deps "$work"/sources/vpps-*.tar.gz); }
mkdir "$work/wheels"
check "pip builds a wheel of it" build
wheel=$(echo "$work"/wheels/vpps-*.whl)
check "for every CPython from 3.9 on" grep -qE -- '-cp39-abi3-linux_' <<< "$wheel"
manylinux() { "$work/build/bin/python" -m auditwheel show "$wheel" | tr '\n' ' ' | grep -E 'consistent with the following *platform tag: "manylinux_'; }
check "it asks for nothing beside what manylinux has" manylinux
needed() { (cd "$work" && "$work/build/bin/python" -m zipfile -e "$wheel" taken && readelf -d taken/vpps/_vpps.abi3.so | grep NEEDED); }
others() { needed | grep -vE 'lib(c|m|dl|pthread)\.so|ld-linux'; }
check "nor for another library" test -z "$(others)"

check "an environment to use it in" "$python" -m venv --clear "$work/use"
check "it is installed" "$work/use/bin/pip" --quiet --disable-pip-version-check install "$wheel"
in_use() { (cd "$work/use" && env -u PYTHONPATH "$work/use/bin/python" "$@"); }
check "the doctor finds it in order" in_use -m vpps.doctor
version=$(sed -n 's/^#define VPPS_VERSION "\(.*\)"/\1/p' include/vpps.h)
check "its version is the library's" test "$(in_use -c 'import vpps, importlib.metadata as m; print(vpps.version(), m.version("vpps"))')" = \
    "$version $version"
check "types are in it" in_use -c 'import vpps, pathlib; assert pathlib.Path(vpps.__file__).with_name("py.typed").exists()'
# The same losses as the package that has what make built in it.
cp examples/trainer.py "$work/trainer.py"
losses() { (cd "$work" && PYTHONHASHSEED=0 "$@" -c 'import random; random.seed(1); exec(open("trainer.py").read().replace("loss:.4f", "loss:.9g"))'); }
ours() { PYTHONPATH=$(realpath "$BUILD/python") losses "$python"; }
if [ -d "$BUILD/python/vpps" ]; then
    check "it trains as what make built does" test "$(losses env -u PYTHONPATH "$work/use/bin/python")" = "$(ours)"
else
    skip "it trains as what make built does" "tests/python was not run"
fi
summary
