"""The pipeline map: a whole job at a glance, live, stepped, scrubbed or standing still."""

from __future__ import annotations

from refimpl.job import JobSnapshot
from widgets.base import front_end
from widgets.frames import Frame, pack
from widgets.moment_view import MomentView
from widgets.pipeline_svg import pipeline_svg
from widgets.text import pipeline_text
from widgets.view_models import Model, pipeline_model

__all__ = ["PipelineMap"]


class PipelineMap(MomentView):
    """A job as a metro map: tasks are stations, channels are lines, buffers wait on them.

    `MomentView` says what it can show, and its options.

        PipelineMap(Recording.of(Simulation(environment, seed=7)), title="Two sources, two windows")
        PipelineMap(ThreadedRun(environment).start())
    """

    _esm = front_end("pipeline_map")
    default_title = "Pipeline map"

    def model_of(self, snapshot: JobSnapshot, action: str, known: Model) -> Model:
        return pipeline_model(snapshot, known, action)

    def text_of(self, model: Model, title: str, error: str) -> str:
        return pipeline_text(model, title, error)

    def svg_of(self, model: Model, title: str, error: str) -> str:
        return pipeline_svg(model, title, error)

    def frame_of(self, model: Model) -> Frame:
        return pack(model)
