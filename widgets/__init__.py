"""Views of the engine for notebooks: live, scrubbed, as a still picture and in words."""

from widgets.copies import Copy, copies_of
from widgets.frames import pack, unpack
from widgets.pipeline_map import PipelineMap
from widgets.pipeline_svg import pipeline_svg
from widgets.recording import Recording
from widgets.ribbon import TwoBufferRibbon, ribbon
from widgets.ribbon_model import ribbon_model, ribbon_model_of_steps, serializer_steps
from widgets.ribbon_svg import ribbon_svg
from widgets.sampler import Sampler
from widgets.text import pipeline_text, ribbon_text
from widgets.view_models import pipeline_model, topology

__all__ = [
    "Copy",
    "PipelineMap",
    "Recording",
    "Sampler",
    "TwoBufferRibbon",
    "copies_of",
    "pack",
    "pipeline_model",
    "pipeline_svg",
    "pipeline_text",
    "ribbon",
    "ribbon_model",
    "ribbon_model_of_steps",
    "ribbon_svg",
    "ribbon_text",
    "serializer_steps",
    "topology",
    "unpack",
]
