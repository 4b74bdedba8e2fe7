"""A case and a pass in, the work and bytes that its graph asks for, and the time that a roof would need for it, out."""

from rooflens.benches.bench_subject import Learner
from rooflens.benches.subject import Subject
from rooflens.benches.suite import Case
from rooflens.compare.standing import Work, work_of
from rooflens.errors import RooflensError
from rooflens.frontends.pytorch.trace import trace_module
from rooflens.frontends.pytorch.tracker import TORCH_DTYPES
from rooflens.graph.records import Graph
from rooflens.hardware.load import load_chip
from rooflens.pipeline.run import predict
from rooflens.pipeline.settings import make_settings

_PASSES = {"forward": "forward", "backward": "backward", "step": "optimizer"}


def roof_work(case: Case, pass_: str, made: Subject, dtype: str, device: str, on: str | None) -> Work | None:
    """None where it cannot be traced: what runs need not be what can be counted."""
    try:
        graph = _graph(case, pass_, made, dtype)
    except RooflensError:
        return None
    training = pass_ != "forward" or case.training
    settings = make_settings(mode="training" if training else "inference", dtype=dtype, optimizer=case.optimizer)
    found = predict(graph, load_chip(on) if on else None, settings, dtype)
    places = [i for i, op in enumerate(graph.ops) if op.pass_ == _PASSES[pass_] and not op.view]
    return work_of(found, places, device) if places else None


def _graph(case: Case, pass_: str, made: Subject, dtype: str) -> Graph:
    """With backward, inputs learn as parameters do; an optimizer steps over parameters alone."""
    learns = pass_ == "backward" or (case.training and pass_ == "forward")
    subject = Subject(module=Learner(made), args=(), kwargs={}) if learns else made
    return trace_module(
        subject.module,
        subject.args,
        subject.kwargs,
        name=case.name,
        source=case.source,
        dtype=TORCH_DTYPES[dtype],
        training=pass_ != "forward" or case.training,
        optimizer=case.optimizer or "none",
    )
