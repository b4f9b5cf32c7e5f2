"""Tests tensors in a GPU's memory that are given and taken by DLPack. The driver is tests/fake_cuda, which copies and orders but runs no kernel."""

import ctypes
import gc
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from small import refused
from vpps._vpps import lib

import vpps

BUILD = Path(os.environ.get("BUILD", "build")).resolve()
FLOAT32 = (2, 32)


class Controls(ctypes.Structure):
    """The members of struct fake_cuda_controls in tests/fake_cuda/fake_cuda.h."""

    _fields_ = [("device", ctypes.c_void_p), ("counts", ctypes.c_void_p), ("set_kernel", ctypes.c_void_p), ("break_call", ctypes.c_void_p),
                ("hold", ctypes.c_void_p), ("host", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint64, ctypes.c_size_t)),
                ("move", ctypes.CFUNCTYPE(None, ctypes.c_uint64, ctypes.c_int)), ("take_calls", ctypes.CFUNCTYPE(ctypes.c_char_p))]


class Managed(ctypes.Structure):
    """The members of DLPack's struct DLManagedTensor."""

    _fields_ = [("data", ctypes.c_uint64), ("kind", ctypes.c_int32), ("device", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64), ("context", ctypes.c_void_p),
                ("deleter", ctypes.c_void_p)]


capsule_new = ctypes.pythonapi.PyCapsule_New
capsule_new.restype, capsule_new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Gpu:
    """The fake GPU: its controls, and memory that tests allocate on it."""

    def __init__(self):
        self.driver = ctypes.CDLL(str(BUILD / "tests/fake_cuda.so"))
        self.controls = Controls.in_dll(self.driver, "fake_cuda")
        context = ctypes.c_void_p()
        assert self.driver.cuInit(0) == 0
        assert self.driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
        assert self.driver.cuCtxPushCurrent_v2(context) == 0

    def close(self):
        assert self.driver.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p())) == 0
        assert self.driver.cuDevicePrimaryCtxRelease_v2(0) == 0

    def allocate(self, n):
        at = ctypes.c_uint64()
        assert self.driver.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(max(4 * n, 1))) == 0
        return at.value

    def floats(self, address, n):
        """Waits for the GPU and returns the numbers at an address of its memory; None: there is no such memory."""
        assert self.driver.cuStreamSynchronize(None) == 0
        at = self.controls.host(address, 4 * n)
        return np.ctypeslib.as_array(ctypes.cast(at, ctypes.POINTER(ctypes.c_float)), (n,)) if at else None

    def calls(self):
        """Returns the driver's calls that copy or order, since the last time, without numbers of events and of streams other than the default one."""
        return re.sub(r" e\d+|(?<= s)[1-9]\d*", "", self.controls.take_calls().decode())


class Tensor:
    """A tensor on the fake GPU that can be passed on by DLPack, like CuPy's arrays. It has the numbers and strides of a float32 array."""

    def __init__(self, gpu, a, number=0, dtype=FLOAT32):
        base = a if a.base is None else a.base
        self.address = gpu.allocate(base.size)
        gpu.floats(self.address, base.size)[:] = base.ravel(order="K")
        if number:
            gpu.controls.move(self.address, number)
        self.number, self.streams, self.ndim = number, [], a.ndim
        sizes = [ctypes.c_int64 * a.ndim] * 2
        self.sizes = sizes[0](*a.shape), sizes[1](*(s // 4 for s in a.strides))
        self.managed = Managed(self.address, 2, number, a.ndim, *dtype, 1, *self.sizes, a.ctypes.data - base.ctypes.data, None, None)

    def __dlpack_device__(self):
        return 2, self.number

    def __dlpack__(self, stream=None):
        self.streams.append(stream)
        return capsule_new(ctypes.addressof(self.managed), b"dltensor", None)


@pytest.fixture
def gpu(monkeypatch, tmp_path):
    if not (BUILD / "tests/fake_cuda.so").exists() or not (BUILD / "tests/fake_nvrtc.so").exists():
        pytest.skip("the stand-ins for CUDA are not built: make test-programs")
    shutil.copy(BUILD / "tests/fake_nvrtc.so", tmp_path / "libnvrtc.so.13")
    monkeypatch.setenv("VPPS_LIBCUDA", str(BUILD / "tests/fake_cuda.so"))
    monkeypatch.setenv("VPPS_NVRTC", str(tmp_path / "libnvrtc.so.13"))
    monkeypatch.setenv("VPPS_CACHE_DIR", str(tmp_path / "cache"))
    gpu = Gpu()
    yield gpu
    gpu.close()


@pytest.fixture
def trainer(gpu):
    model = vpps.Model(1)
    W, b = model.add_matrix("W", 4, 3), model.add_vector("b", 4)
    model.turn = lambda x: vpps.tanh(W @ x + b)
    with vpps.Trainer(model, device="cuda", no_tuning=True, keep_bytes=1 << 16) as t:
        yield t


@pytest.mark.parametrize("shape", [(), (3,), (4, 3), (1, 5)])
def test_tensors_become_values_and_values_tensors(gpu, trainer, rng, shape):
    a = np.array(rng.standard_normal(shape), np.float32, order="F")
    given = Tensor(gpu, a)
    gpu.calls()
    value = trainer.keep_data(given)
    assert gpu.calls() == f"record s0; wait s; copy {a.nbytes} s; record s; wait s0; "
    assert given.streams == [1]
    np.testing.assert_array_equal(value.numpy(), a)
    assert value.__dlpack_device__() == (2, 0)
    capsule = value.__dlpack__(stream=2)
    assert gpu.calls() == f"record s0; wait s; copy {a.nbytes} s; record s; wait s0; "
    t = lib.glue_dlpack(id(capsule))
    assert (t.device_type, t.device_id, t.code, t.bits, t.lanes, t.byte_offset) == (2, 0, *FLOAT32, 1, 0)
    assert (*t.shape[0:t.ndim],) == shape
    assert [*t.strides[0:t.ndim]] == [1, *shape[:1]][:t.ndim]
    trainer.close()  # the tensor outlives its trainer
    address = int(vpps._vpps.ffi.cast("uintptr_t", t.data))
    np.testing.assert_array_equal(gpu.floats(address, a.size), a.ravel(order="K"))
    del capsule, t
    assert gpu.floats(address, a.size) is None


def test_a_taken_tensor_is_freed_by_who_took_it(gpu, trainer):
    capsule = trainer.keep_data(np.ones(3, np.float32)).__dlpack__()
    t = lib.glue_dlpack(id(capsule))
    address = int(vpps._vpps.ffi.cast("uintptr_t", t.data))
    managed = Managed.from_address(int(vpps._vpps.ffi.cast("uintptr_t", t)))
    ctypes.pythonapi.PyCapsule_SetName(ctypes.py_object(capsule), b"used_dltensor")
    assert not lib.glue_dlpack(id(capsule))
    del capsule
    assert gpu.floats(address, 3) is not None
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(managed.deleter)(ctypes.addressof(managed))
    assert gpu.floats(address, 3) is None


def test_values_of_the_host(rng):
    a = np.asfortranarray(rng.standard_normal((2, 3)).astype(np.float32))
    with vpps.Trainer(vpps.Model(1)) as trainer:
        np.testing.assert_array_equal(np.from_dlpack(trainer.keep_data(a)), a)


def test_tensors_become_inputs(gpu, trainer, rng):
    a, graph = rng.standard_normal((5, 3)).astype(np.float32), trainer.model.graph()
    with graph:
        nodes, one = graph.inputs(Tensor(gpu, a)), vpps.input(Tensor(gpu, a[1].copy()))
        assert [x.shape for x in nodes] == [(3, 1)] * 5
        assert one.shape == (3, 1)
        assert len(graph.inputs(Tensor(gpu, np.zeros((0, 3), np.float32)))) == 0
        gpu.calls()
        trainer.forward([trainer.model.turn(x) for x in (*nodes, one)])
        assert "copy" not in gpu.calls()
    assert trainer.stats().kept_values == 2
    graph.clear()
    del nodes, one
    gc.collect()
    trainer.keep_data(0.0)
    assert trainer.stats().kept_values == 1


def test_gradients_on_the_gpu(gpu, trainer, rng):
    graph, slopes = trainer.model.graph(), rng.standard_normal((5, 4)).astype(np.float32)
    with graph:
        x = graph.inputs(Tensor(gpu, rng.standard_normal((5, 3)).astype(np.float32)))
        values = [trainer.model.turn(y) for y in x]
        step = trainer.step_forward(values, gradients=x)
    given = [Tensor(gpu, s.copy()) for s in slopes]
    for wrong, text in ((Tensor(gpu, slopes), r"gradients\[1\]: a tensor of shape \(5, 4\); expected \(4,\), the value's"),
                        (slopes[1], r"gradients\[1\]: a tensor on the CPU; expected one on cuda:0, where the engine is"),
                        (Tensor(gpu, slopes[1].copy(), 1), r"gradients\[1\]: a tensor on cuda:1; expected one on cuda:0, where the engine is")):
        refused((vpps.ArgumentError, TypeError), text, lambda: step.backward([given[0], wrong, None, None, given[4]]))
    gpu.calls()
    step.backward([given[0], given[1], None, given[3], given[4]])
    calls = gpu.calls()
    assert calls.startswith("record s0; wait s; copy 16 s; copy 16 s; set 4 s; copy 16 s; copy 16 s; record s; wait s0; "), calls
    trainer.update()


def test_tensors_elsewhere_are_refused(gpu, trainer, rng):
    m = rng.standard_normal((4, 3)).astype(np.float32)

    class Grown(Tensor):
        requires_grad = True

    with trainer.model.graph() as g:
        for call, data, text in (
                (trainer.keep_data, Tensor(gpu, m, 1), "keep_data: a tensor on cuda:1; expected one on cuda:0, where the engine is"),
                (trainer.keep_data, Tensor(gpu, m), r"keep_data: .*column after column; expected x.t\(\).contiguous\(\).t\(\)"),
                (trainer.keep_data, Tensor(gpu, m[::2, 0]), r"keep_data: .*of a vector x.contiguous\(\)"),
                (trainer.keep_data, Tensor(gpu, m[None]), "keep_data: a tensor of 3 dimensions; expected at most 2"),
                (vpps.input, Tensor(gpu, m, dtype=(2, 64)), "input|keep_data: a tensor on cuda:0 of another type; expected float32"),
                (vpps.input, Grown(gpu, m), "input: a tensor that requires a gradient"),
                (g.inputs, Tensor(gpu, m.T), r"inputs: a tensor of shape \(3, 4\) on a GPU; expected n x rows, contiguous: x.contiguous\(\)"),
                (g.inputs, Tensor(gpu, m, 1), "inputs: a tensor on cuda:1; expected one on cuda:0, where the engine is")):
            refused((vpps.ArgumentError, TypeError), text, lambda: call(data))
        moved = Tensor(gpu, m)
        gpu.controls.move(moved.address, 1)  # the memory is on another device than its producer says
        refused(vpps.ArgumentError, "keep_data: data is memory of GPU 1; expected GPU 0", lambda: g.inputs(moved))


def test_arrays_of_the_host_go_on_working(gpu, trainer, rng):
    m = rng.standard_normal((4, 3)).astype(np.float32)
    np.testing.assert_array_equal(trainer.keep_data(m).numpy(), m)
    np.testing.assert_array_equal(trainer.keep_data(Tensor(gpu, np.asfortranarray(m))).numpy(), m)
    np.testing.assert_array_equal(trainer.keep_data(m).numpy(), m)  # the library has set the mode of pointers back to the host
