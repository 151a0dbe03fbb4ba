"""Views of the engine for notebooks: live, scrubbed, as a still picture and in words."""

from widgets.alignment_view import AlignmentView
from widgets.branch import Change
from widgets.bytes_beside_flink import BytesBesideFlink, bytes_model
from widgets.checkpoint_view import CheckpointView
from widgets.cluster_view import ClusterView
from widgets.copies import Copy, copies_of
from widgets.credit_view import CreditView, credit_model
from widgets.exchange_view import ExchangeView, exchange_model
from widgets.experiment import ConsumerSpeed, throughput_by_timeout
from widgets.frames import pack
from widgets.job_graph_model import graph_of
from widgets.job_view import JobView
from widgets.on_sight import OnSight
from widgets.paper import Curve, Panel, PaperFigure
from widgets.pipeline_map import PipelineMap
from widgets.pipeline_svg import pipeline_svg
from widgets.pool_view import PoolView, pool_model
from widgets.queue_view import QueueView, queue_model
from widgets.race_view import RaceView
from widgets.recording import Recording
from widgets.ribbon import TwoBufferRibbon, ribbon
from widgets.ribbon_model import ribbon_model, ribbon_model_of_steps, serializer_steps
from widgets.ribbon_svg import ribbon_svg
from widgets.sampler import Sampler
from widgets.segment_view import SegmentView, segment_model
from widgets.stepper import Stepper
from widgets.task_manager_view import TaskManagerView
from widgets.text import pipeline_text, ribbon_text
from widgets.throughput_view import ThroughputView
from widgets.timeline_view import TimelineView
from widgets.view_models import pipeline_model, topology
from widgets.watermark_view import WatermarkView

__all__ = [
    "AlignmentView",
    "BytesBesideFlink",
    "Change",
    "CheckpointView",
    "ClusterView",
    "ConsumerSpeed",
    "Copy",
    "CreditView",
    "Curve",
    "ExchangeView",
    "JobView",
    "OnSight",
    "Panel",
    "PaperFigure",
    "PipelineMap",
    "PoolView",
    "QueueView",
    "RaceView",
    "Recording",
    "Sampler",
    "SegmentView",
    "Stepper",
    "TaskManagerView",
    "ThroughputView",
    "TimelineView",
    "TwoBufferRibbon",
    "WatermarkView",
    "bytes_model",
    "copies_of",
    "credit_model",
    "exchange_model",
    "graph_of",
    "pack",
    "pipeline_model",
    "pipeline_svg",
    "pipeline_text",
    "pool_model",
    "queue_model",
    "ribbon",
    "ribbon_model",
    "ribbon_model_of_steps",
    "ribbon_svg",
    "ribbon_text",
    "segment_model",
    "serializer_steps",
    "throughput_by_timeout",
    "topology",
]
