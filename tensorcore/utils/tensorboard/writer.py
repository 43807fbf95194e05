"""SummaryWriter: the numbers, pictures and texts of a training run as event files that TensorBoard reads."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from tensorcore.errors import ArgumentTypeError
from tensorcore.tensor import Tensor
from tensorcore.utils.tensorboard import scenes, summaries
from tensorcore.utils.tensorboard.graph import graph_of, onnx_graph
from tensorcore.utils.tensorboard.projector import write_embedding
from tensorcore.utils.tensorboard.protos import proto
from tensorcore.utils.tensorboard.summary import hparams

__all__ = ["FileWriter", "SummaryWriter"]


class FileWriter:
    """One event file, to which events are added in the background.

    Args:
        log_dir: the directory of the file, made if it is not there.
        max_queue: how many events wait at most.
        flush_secs: how often what waits is written.
        filename_suffix: the end of the file's name.
    """

    def __init__(self, log_dir: Any, max_queue: int = 10, flush_secs: int = 120, filename_suffix: str = "") -> None:
        self._given = os.fspath(log_dir), max_queue, flush_secs, filename_suffix
        self.event_writer = self._open()

    def get_logdir(self) -> str:
        """The directory."""
        return self._given[0]

    def add_event(self, event: Any, step: int | None = None, walltime: float | None = None) -> None:
        """Add an event message."""
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            event.step = int(step)
        self.event_writer.add_event(event)

    def add_summary(self, summary: Any, global_step: int | None = None, walltime: float | None = None) -> None:
        """Add a summary message."""
        self.add_event(proto("compat.proto.event_pb2").Event(summary=summary), global_step, walltime)

    def add_graph(self, graph: Any, walltime: float | None = None) -> None:
        """Add a graph message."""
        self.add_event(proto("compat.proto.event_pb2").Event(graph_def=graph.SerializeToString()), None, walltime)

    def flush(self) -> None:
        """Write what waits."""
        self.event_writer.flush()

    def close(self) -> None:
        """Write what waits, and close the file."""
        self.event_writer.close()

    def reopen(self) -> None:
        """Begin a further file in the directory."""
        self.event_writer = self._open()

    def _open(self) -> Any:
        folder, queue, seconds, suffix = self._given
        return proto("summary.writer.event_file_writer").EventFileWriter(folder, queue, seconds, suffix)


class SummaryWriter:
    """Writes what a run wants to show; a ``with`` closes it at the end.

    Values may be tensors of any device, arrays or numbers. ``global_step`` is the place on the horizontal axis,
    ``walltime`` the time in seconds since 1970, now where None.

    Args:
        log_dir: the run's directory; ``runs/{date}_{host}{comment}`` where None.
        comment: the end of that name.
        purge_step: where a run goes on after a crash, the first step whose events are to be forgotten.
        max_queue, flush_secs, filename_suffix: as in FileWriter.

    Raises UsageError, which says what to install, where the tensorboard package is missing.
    """

    def __init__(
        self,
        log_dir: Any = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: int = 120,
        filename_suffix: str = "",
    ) -> None:
        if not log_dir:
            now = datetime.now().strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{now}_{socket.gethostname()}{comment}")
        self.log_dir = os.fspath(log_dir)
        self.purge_step, self.max_queue, self.flush_secs = purge_step, max_queue, flush_secs
        self.filename_suffix = filename_suffix
        self.file_writer: FileWriter | None = None
        self.all_writers: dict[str, FileWriter] = {}
        self._get_file_writer()

    def get_logdir(self) -> str:
        """The run's directory."""
        return self.log_dir

    def add_scalar(
        self,
        tag: str,
        scalar_value: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        new_style: bool = False,
        double_precision: bool = False,
    ) -> None:
        """One number under a name; ``new_style`` stores it as a tensor, of float64 with ``double_precision``."""
        self._add(summaries.scalar(tag, scalar_value, new_style, double_precision), global_step, walltime)

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: Mapping[str, Any],
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Several numbers in one diagram: each gets a run of its own below this one's directory."""
        for tag, value in tag_scalar_dict.items():
            folder = os.path.join(self.get_logdir(), f"{main_tag.replace('/', '_')}_{tag}")
            if folder not in self.all_writers:
                self.all_writers[folder] = FileWriter(folder, self.max_queue, self.flush_secs, self.filename_suffix)
            self.all_writers[folder].add_summary(summaries.scalar(main_tag, value), global_step, walltime)

    def add_tensor(self, tag: str, tensor: Any, global_step: int | None = None, walltime: float | None = None) -> None:
        """A tensor's values."""
        self._add(summaries.tensor(tag, summaries.as_array(tensor, "add_tensor")), global_step, walltime)

    def add_histogram(
        self,
        tag: str,
        values: Any,
        global_step: int | None = None,
        bins: Any = "tensorflow",
        walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:
        """How values are spread; ``bins`` is ``tensorflow``, or a name, number or limits for ``numpy.histogram``."""
        self._add(summaries.histogram(tag, values, bins, max_bins), global_step, walltime)

    def add_histogram_raw(
        self,
        tag: str,
        min: Any,
        max: Any,
        num: Any,
        sum: Any,
        sum_squares: Any,
        bucket_limits: Sequence[float],
        bucket_counts: Sequence[float],
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """A histogram that was counted elsewhere."""
        made = summaries.histogram_raw(tag, min, max, num, sum, sum_squares, list(bucket_limits), list(bucket_counts))
        self._add(made, global_step, walltime)

    def add_image(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """A picture of uint8, or of numbers from 0 to 1; ``dataformats`` names its dims."""
        self._add(summaries.image(tag, img_tensor, dataformats, "add_image"), global_step, walltime)

    def add_images(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:
        """A batch of pictures as one, eight in a row."""
        self._add(summaries.image(tag, img_tensor, dataformats, "add_images"), global_step, walltime)

    def add_image_with_boxes(
        self,
        tag: str,
        img_tensor: Any,
        box_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        rescale: float = 1,
        dataformats: str = "CHW",
        labels: Sequence[str] | None = None,
    ) -> None:
        """A picture, ``rescale`` times as large, with a frame for each row (left, top, right, bottom), and labels."""
        made = scenes.boxes(tag, img_tensor, box_tensor, rescale, dataformats, labels)
        self._add(made, global_step, walltime)

    def add_video(
        self,
        tag: str,
        vid_tensor: Any,
        global_step: int | None = None,
        fps: float = 4,
        walltime: float | None = None,
    ) -> None:
        """Films (count, frames, channels, height, width) of uint8, or of numbers from 0 to 1, as a GIF; needs Pillow."""
        self._add(scenes.video(tag, vid_tensor, fps), global_step, walltime)

    def add_mesh(
        self,
        tag: str,
        vertices: Any,
        colors: Any = None,
        faces: Any = None,
        config_dict: Mapping[str, Any] | None = None,
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Points (count, points, 3) with colours from 0 to 255, and triangles (count, faces, 3) of the points' numbers.

        ``config_dict`` is for Three.js: its classes and their options.
        """
        self._add(scenes.mesh(tag, vertices, colors, faces, config_dict), global_step, walltime)

    def add_figure(
        self, tag: str, figure: Any, global_step: int | None = None, close: bool = True, walltime: float | None = None
    ) -> None:
        """A matplotlib figure, or a list of them; each is closed unless told otherwise."""
        import numpy as np
        from matplotlib import pyplot
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        pixels = []
        for one in figure if isinstance(figure, (list, tuple)) else [figure]:
            canvas = FigureCanvasAgg(one)
            canvas.draw()
            pixels.append(np.asarray(canvas.buffer_rgba())[..., :3])
            if close:
                pyplot.close(one)
        self._add(summaries.image(tag, np.stack(pixels), "NHWC", "add_figure"), global_step, walltime)

    def add_audio(
        self,
        tag: str,
        snd_tensor: Any,
        global_step: int | None = None,
        sample_rate: int = 44100,
        walltime: float | None = None,
    ) -> None:
        """Sound: numbers from -1 to 1, ``sample_rate`` of them a second."""
        self._add(summaries.audio(tag, snd_tensor, sample_rate), global_step, walltime)

    def add_text(
        self, tag: str, text_string: str, global_step: int | None = None, walltime: float | None = None
    ) -> None:
        """A text in Markdown."""
        self._add(summaries.text(tag, text_string), global_step, walltime)

    def add_pr_curve(
        self,
        tag: str,
        labels: Any,
        predictions: Any,
        global_step: int | None = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Precision over recall: labels 0 and 1, and a prediction from 0 to 1 for each."""
        self._add(summaries.curve(tag, labels, predictions, num_thresholds, weights), global_step, walltime)

    def add_pr_curve_raw(
        self,
        tag: str,
        true_positive_counts: Any,
        false_positive_counts: Any,
        true_negative_counts: Any,
        false_negative_counts: Any,
        precision: Any,
        recall: Any,
        global_step: int | None = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Precision over recall that was counted elsewhere, at so many thresholds; ``weights`` counts for nothing."""
        counts = (
            true_positive_counts,
            false_positive_counts,
            true_negative_counts,
            false_negative_counts,
            precision,
            recall,
        )
        self._add(scenes.counted_curve(tag, counts, num_thresholds), global_step, walltime)

    def add_custom_scalars(self, layout: Mapping[str, Mapping[str, Sequence[Any]]]) -> None:
        """Diagrams of several numbers of ``add_scalar``: ``{category: {title: ["Multiline", tags]}}``, or ``["Margin", tags]``."""
        self._add(scenes.layout(layout), None, None)

    def add_custom_scalars_multilinechart(
        self, tags: Sequence[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """One diagram of several numbers."""
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(
        self, tags: Sequence[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """One diagram of a number between two others: the tags of the value, the lower and the upper one."""
        self.add_custom_scalars({category: {title: ["Margin", tags]}})

    def add_graph(
        self, model: Any, input_to_model: Any = None, verbose: bool = False, use_strict_trace: bool = True
    ) -> None:
        """The graph of a model's call: its parameters, its ops by module, and their results' shapes."""
        self._get_file_writer().add_graph(graph_of(model, input_to_model))

    def add_onnx_graph(self, prot: Any) -> None:
        """The graph of an ONNX file, whose path is given."""
        self._get_file_writer().add_graph(onnx_graph(prot))

    def add_embedding(
        self,
        mat: Any,
        metadata: Sequence[Any] | None = None,
        label_img: Any = None,
        global_step: int | None = None,
        tag: str = "default",
        metadata_header: Sequence[str] | None = None,
    ) -> None:
        """Points (count, features) for the projector, with a label (or one for each header) and a picture for each."""
        write_embedding(self.get_logdir(), mat, metadata, label_img, global_step, tag, metadata_header)

    def add_hparams(
        self,
        hparam_dict: Mapping[str, Any],
        metric_dict: Mapping[str, Any],
        hparam_domain_discrete: Mapping[str, Sequence[Any]] | None = None,
        run_name: str | None = None,
        global_step: int | None = None,
    ) -> None:
        """The hyperparameters of this run beside what came of them; they get a run below this one's directory."""
        for one in (hparam_dict, metric_dict):
            if not isinstance(one, Mapping):
                raise ArgumentTypeError(
                    f"add_hparams: hparam_dict and metric_dict should be dictionary, got {type(one).__name__}; pass dicts"
                )
        folder = os.path.join(self.get_logdir(), str(time.time()) if run_name is None else run_name)
        parts = hparams(hparam_dict, metric_dict, hparam_domain_discrete)
        with SummaryWriter(folder) as inner:
            writer = inner._get_file_writer()
            for one in parts:
                writer.add_summary(one, global_step)
            for tag, value in metric_dict.items():
                inner.add_scalar(tag, value, global_step)

    def flush(self) -> None:
        """Write what waits."""
        for one in self.all_writers.values():
            one.flush()

    def close(self) -> None:
        """Write what waits, and close the files; a later call opens new ones."""
        for one in self.all_writers.values():
            one.close()
        self.file_writer = None
        self.all_writers = {}

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _add(self, summary: Any, step: Any, walltime: float | None) -> None:
        step = step.item() if isinstance(step, Tensor) else step
        self._get_file_writer().add_summary(summary, step, walltime)

    def _get_file_writer(self) -> FileWriter:
        writer = self.file_writer
        if writer is None:
            writer = FileWriter(self.log_dir, self.max_queue, self.flush_secs, self.filename_suffix)
            self.file_writer = self.all_writers[writer.get_logdir()] = writer
            if self.purge_step is not None:
                events = proto("compat.proto.event_pb2")
                writer.add_event(events.Event(file_version="brain.Event:2"), self.purge_step)
                start = events.SessionLog(status=events.SessionLog.START)
                writer.add_event(events.Event(session_log=start), self.purge_step)
                self.purge_step = None
        return writer
