"""Checks that the package calls every public function of the headers, or that the function is listed here with the reason why not."""

import re
from dataclasses import fields
from inspect import isclass, isfunction, signature
from pathlib import Path

import vpps
from vpps import engine, errors
from vpps._vpps import ffi, lib

ROOT = Path(__file__).parents[2]

LEFT_OUT = {
    "vpps_affine1": "vpps.affine takes any number of products",
    "vpps_affine2": "vpps.affine takes any number of products",
    "vpps_gather_list": "Recorder.gather_list calls vpps_gather_list_from with child 0",
    "vpps_kept_shape": "Value.shape is the shape that was kept",
    "vpps_pull_list": "Recorder.pull_list calls vpps_pull_list_of with list 0",
}


def header():
    text = "".join(p.read_text() for p in sorted((ROOT / "include").glob("*.h")))
    return set(re.findall(r"^VPPS_API [^;(]*?\b(vpps_\w+)\(", text, re.MULTILINE))


def called():
    source = "".join(p.read_text() for p in (ROOT / "python").glob("vpps/*.py"))
    operations = {f"vpps_{name}" for name in re.findall(r'= _(?:unary|binary|several)\("(\w+)"', source)}
    kinds, names = re.findall(r'_kind = "(\w+)"', source), re.findall(r'self\._(?:call|file|from)\("(\w+)"', source)
    of_data = {f"vpps_{kind}_{name}" for kind in kinds for name in names} & header()
    return set(re.findall(r"\b_?lib\.(vpps_\w+)", source)) | operations | of_data | called_in_c()


def called_in_c():
    return set(re.findall(r"\b(vpps_\w+)\(", "".join(p.read_text() for p in (ROOT / "python").glob("*.[ch]"))))


def test_every_function_is_bound_or_left_out():
    functions = header()
    assert len(functions) > 200
    assert functions - called() - LEFT_OUT.keys() == set()
    assert called() & LEFT_OUT.keys() == set(), "listed as left out, but called"
    assert LEFT_OUT.keys() - functions == set(), "listed as left out, but not in the headers"


def test_cffi_knows_every_function():
    assert {name for name in header() if not hasattr(lib, name)} == set()


IN_PROCESSES = {"vpps_communicator_open", "vpps_communicator_close", "vpps_communicator_rank", "vpps_communicator_size",
                "vpps_shard_tables", "vpps_forward_end"}  # test_processes.py runs them in processes of its own
ON_A_GPU = {"vpps_array_create", "vpps_kept_columns", "vpps_set_pointer_mode"}  # by test_dlpack.py on a GPU, by test_torch.py under simt


def test_every_function_that_is_bound_is_used_by_a_test(functions_used):
    when_imported = {"vpps_version"}
    assert (header() & called()) - called_in_c() - when_imported - functions_used - IN_PROCESSES - ON_A_GPU == set()


def test_every_status_has_an_exception():
    table = re.search(r"VPPS_STATUS_TABLE\(X\)(.*?)typedef enum", (ROOT / "include/vpps.h").read_text(), re.DOTALL)[1]
    names = re.findall(r'X\((\w+), "', table)
    assert names == [ffi.string(lib.vpps_status_name(n)).decode() for n in range(len(names))] and {*names} == {"OK", *errors.CLASSES}


def members(struct):
    return {name for name, _ in ffi.typeof(struct).fields} - {"size", "reserved"}


def test_structs_have_all_their_fields():
    assert members("vpps_stats") == {f.name for f in fields(vpps.Stats)}
    assert members("vpps_trial") == {f.name for f in fields(vpps.Trial)}
    assert members("vpps_cost") == set(vpps.Cost._fields)
    parameters = set(signature(vpps.Trainer).parameters)
    expected = members("vpps_options") - {"optimizer", "log_context"} | members("vpps_optimizer") - {"kind"} | {"optimizer"}
    assert parameters - {"model", "on_step"} == expected


def test_enums_have_all_their_names():
    optimizers = re.findall(r'X\(\w+, "(\w+)", \d, [\d.]+f\)', (ROOT / "include/vpps.h").read_text())
    assert optimizers and set(engine.ENUMS["optimizer"]) == set(optimizers)
    for name in ("optimizer", "gradients", "nonfinite", "caller", "precision"):
        assert set(re.findall(r"'(\w+)'", signature(vpps.Trainer).parameters[name].annotation)) == set(engine.ENUMS[name]), name


def test_everything_public_is_documented():
    public = {name: getattr(vpps, name) for name in vpps.__all__}
    public |= {f"data.{n}": x for n, x in vars(vpps.data).items() if getattr(x, "__module__", "") == "vpps.data" and n[0] != "_"}
    checked, without = 0, []
    for name, x in public.items():
        parts = {name: x}
        if isclass(x):
            parts |= {f"{name}.{n}": m.fget if isinstance(m, property) else m for n, m in vars(x).items() if n[0] != "_"}
        for n, part in parts.items():
            if isclass(part) or isfunction(part):
                checked += 1
                if not part.__doc__:
                    without.append(n)
    assert without == [] and checked > 200
    assert vpps.Cell.__call__.__doc__
    source = "".join(p.read_text() for p in (ROOT / "python/vpps").glob("*.py"))
    assert not re.search(r"vpps(_data)?\.h\b|include/", source), "a wheel has no headers"
    unnamed = [n for n in signature(vpps.Trainer).parameters if not re.search(rf"\b{n}\b", vpps.Trainer.__doc__)]
    assert unnamed == []
    shown = vpps.Stats.__doc__
    assert [f.name for f in fields(vpps.Stats) if f.name not in shown and not f.name.startswith(("total_", "peak_"))] == []


def test_version_is_the_librarys():
    version = re.search(r'#define VPPS_VERSION "(.*)"', (ROOT / "include/vpps.h").read_text())[1]
    assert vpps.__version__ == vpps.version() == version == ffi.string(lib.glue_version()).decode()
