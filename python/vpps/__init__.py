"""VPPS: trains dynamic neural networks, whose computation graph is different for every input.

    model = vpps.Model(seed=1)           declare parameters, record cells
    trainer = vpps.Trainer(model)        specialise the engine, once
    graph = model.graph()
    for batch in batches:
        with graph:                      build this batch's graphs
            loss = ...
            trainer.step(loss)           forward, backward, update

The names are those of the C library without their prefix."""

from . import data, nn, ops
from ._arrays import ragged
from ._vpps import ffi as _ffi
from ._vpps import lib as _lib
from .engine import Stats, Value
from .errors import (ArgumentError, DeviceError, Error, FileError, FormatError, NonfiniteError, OutOfMemoryError, PoolError,
                     ScriptError, ShapeError, StallError, StateError)
from .graph import Application, Cell, Cost, Graph, Members, Recorder, current
from .metrics import Metrics, progress
from .model import Gradient, Init, Lookup, Matrix, Model, Parameter, Vector, constant_init, glorot, normal, uniform
from .node import Node, Nodes, PulledIndex, Vertex, Vertices
from .ops import *  # noqa: F403
from .ops import abs as abs, input as input, max as max, min as min, slice as slice, sum as sum
from .step import Step
from .trainer import PROFILE, Asked, Communicator, Inference, Trainer, Trial, checkpoint_metadata

__version__: str = _ffi.string(_lib.vpps_version()).decode()


def version() -> str:
    """The version of the library in this package."""
    return __version__


__all__ = ["Application", "ArgumentError", "Asked", "Cell", "Communicator", "Cost", "DeviceError", "Error", "FileError", "FormatError",
           "Gradient", "Graph", "Inference", "Init", "Lookup", "Matrix", "Members", "Metrics", "Model", "Node", "Nodes", "NonfiniteError",
           "OutOfMemoryError", "PROFILE", "Parameter", "PoolError", "PulledIndex", "Recorder", "ScriptError", "ShapeError", "StallError",
           "StateError", "Stats", "Step", "Trainer", "Trial", "Value", "Vector", "Vertex", "Vertices", "checkpoint_metadata",
           "constant_init", "current", "data", "glorot", "nn", "normal", "progress", "ragged", "uniform", "version"]
__all__ += ops.__all__
