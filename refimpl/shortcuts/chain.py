"""A chain that takes values and batches, and the outputs between its operators."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from refimpl.errors import USER_CODE_RAISES, SluiceError, speaks_for_itself
from refimpl.producer.record_writer import RecordWriter
from refimpl.records.elements import RecordBatch, StreamRecord
from refimpl.shortcuts.forms import BatchForm
from refimpl.shortcuts.operators import Value, batch_form, co_value_forms, value_form
from refimpl.shortcuts.writer import FastRecordWriter
from refimpl.task.chain import ChainNode, OperatorChain
from refimpl.task.co_operators import TwoInputOperator
from refimpl.task.collectors import BroadcastingOutputCollector, CopyingBroadcastingOutputCollector
from refimpl.task.operators import Operator
from refimpl.task.outputs import ChainingOutput, CopyingChainingOutput, CountingOutput, Output, RecordWriterOutput

__all__ = ["FastChain", "FastCountingOutput"]


class FastCountingOutput(CountingOutput):
    """Counts records and passes them to where `output` would: the output in between would only add a call.

    Stands for `CountingOutput.collect`. `forms` are those of the operators behind it, by their identity.
    """

    def __init__(
        self,
        output: Output,
        fail: Callable[[object, BaseException], SluiceError] | None = None,
        forms: Mapping[int, BatchForm] | None = None,
    ) -> None:
        super().__init__(output, fail)
        self._forms = {} if forms is None else forms
        self.redirect(output)

    def redirect(self, output: Output) -> None:
        super().redirect(output)
        self.writer: FastRecordWriter | None = None  # where all main records go, if that is the network
        self._pass_on: Callable[[StreamRecord], object] = output.collect
        self._fail_there = self._fail
        if isinstance(output, RecordWriterOutput) and output.tag is None:
            self._pass_on = output.writer.emit
            if isinstance(output.writer, FastRecordWriter):
                self.writer = output.writer
                self._pass_on = output.writer.put
        elif type(output) is ChainingOutput and output.tag is None:
            self._pass_on, self._fail_there = output.operator.process, output.operator.fail

    def collect(self, record: StreamRecord) -> None:
        self.num_records += 1
        try:
            self._pass_on(record)
        except USER_CODE_RAISES as error:
            self._refuse_there(record, error)
            raise

    def _refuse_there(self, record: StreamRecord, error: BaseException) -> None:
        """Raise an error that names the operator that was called, if `error` does not do so itself."""
        if self._fail_there is not None and not speaks_for_itself(error):
            raise self._fail_there(record.value, error) from error

    def collect_from(self, records: Iterator[StreamRecord]) -> None:
        """Send records to `writer` until there are no more, or one must wait for a buffer."""
        assert self.writer is not None, f"{self.output} is not the network"
        num_before = self.num_records - self.writer.num_records
        try:
            self.writer.emit_from(records, self._refuse_there)
        finally:
            self.num_records = num_before + self.writer.num_records

    def collect_batch(self, batch: RecordBatch) -> None:
        """Send the records of a batch down the main output: at once, where all that is there takes batches."""
        if self._takes_batches(self.output):
            self.num_records += len(batch)
            self._send(batch, self.output)
        else:
            for record in batch.records():
                self.collect(record)

    def _takes_batches(self, output: Output) -> bool:
        kind = type(output)
        if isinstance(output, RecordWriterOutput):
            return output.tag is not None or isinstance(output.writer, FastRecordWriter)
        if kind is ChainingOutput or kind is CopyingChainingOutput:
            assert isinstance(output, ChainingOutput)
            return output.tag is not None or self._forms[id(output.operator)].takes_batches
        if kind is BroadcastingOutputCollector or kind is CopyingBroadcastingOutputCollector:
            assert isinstance(output, BroadcastingOutputCollector)
            return all(map(self._takes_batches, output.outputs))
        return False

    def _send(self, batch: RecordBatch, output: Output) -> None:
        """Give a batch to one output or several, all of which take batches; nobody changes its columns."""
        if isinstance(output, BroadcastingOutputCollector):
            for each in output.outputs:
                self._send(batch, each)
        elif isinstance(output, RecordWriterOutput):
            if output.tag is None:
                assert isinstance(output.writer, FastRecordWriter), f"{output.writer} takes no batches"
                self._write(batch, output.writer)
        elif isinstance(output, ChainingOutput) and output.tag is None:
            self._forms[id(output.operator)].process_batch(
                batch.copy() if isinstance(output, CopyingChainingOutput) else batch
            )

    def _write(self, batch: RecordBatch, writer: FastRecordWriter) -> None:
        """Write a batch; what the user's key function, selector or type raises names the record."""
        num_before = writer.num_records
        try:
            writer.write_batch(batch)
        except USER_CODE_RAISES as error:
            if num_written := writer.num_records - num_before:  # the last one counted is the one that failed
                self._refuse([*batch.records()][num_written - 1], error)
                raise
            for record in batch.records():
                try:
                    writer.put(record)
                except USER_CODE_RAISES as of_record:
                    self._refuse(record, of_record)
                    raise
            raise


class FastChain(OperatorChain):
    """Hands many records, values or a batch to its head with one call.

    Stands for `OperatorChain.process`, called with each record.
    """

    def __init__(
        self,
        nodes: Sequence[ChainNode],
        object_reuse: bool,
        copying_output: Callable[..., ChainingOutput] = CopyingChainingOutput,
    ) -> None:
        self._forms: dict[int, BatchForm] = {}  # by the identity of their operators
        super().__init__(nodes, object_reuse, copying_output)
        self._head_form = self._forms[id(self.head)]
        self._process_value: Value | None = value_form(self.head)
        self._process_values = co_value_forms(self.head) if isinstance(self.head, TwoInputOperator) else ()
        self._is_head_passing = type(self.head).process is Operator.process

    @property
    def takes_values(self) -> bool:
        """Whether the head needs no record around a value, see `process_values`."""
        return self._process_value is not None

    @property
    def takes_batches(self) -> bool:
        """Whether the head treats a batch at once now."""
        return self._head_form.takes_batches

    def process_batch(self, batch: RecordBatch) -> None:
        """Hand a batch to the head."""
        self.num_records_in += len(batch)
        self._head_form.process_batch(batch)

    def process_records(self, records: Iterator[StreamRecord], writers: Sequence[RecordWriter]) -> None:
        """Hand records to the head until there are none, or one of `writers` waits for a buffer."""
        head = self.head
        if self._is_head_passing and isinstance(head.output, FastCountingOutput) and head.output.writer is not None:
            # What the output takes one by one, it takes many at a time too.
            counter = head.output
            num_before = self.num_records_in - counter.num_records
            try:
                counter.collect_from(records)
            finally:
                self.num_records_in = num_before + counter.num_records
            return
        for record in records:
            self.num_records_in += 1
            try:
                head.process(record)
            except USER_CODE_RAISES as error:
                if speaks_for_itself(error):
                    raise
                raise head.fail(record.value, error) from error
            for writer in writers:
                if writer.is_blocked:
                    return

    def process_values(self, values: Iterator[tuple[object, int | None]], writers: Sequence[RecordWriter]) -> None:
        """Hand values and their times to the head likewise, if it `takes_values`."""
        assert self._process_value is not None, f"{self.head} takes records"
        self._process_each(self._process_value, values, writers)

    def process_values_from(
        self, side: int, values: Iterator[tuple[object, int | None]], writers: Sequence[RecordWriter]
    ) -> None:
        """Hand values of input `side` of two and their times to the head likewise."""
        self._process_each(self._process_values[side], values, writers)

    def _process_each(
        self, process_value: Value, values: Iterator[tuple[object, int | None]], writers: Sequence[RecordWriter]
    ) -> None:
        num_records = 0
        try:
            for value, time in values:
                num_records += 1
                try:
                    process_value(value, time)
                except USER_CODE_RAISES as error:
                    if speaks_for_itself(error):
                        raise
                    raise self.head.fail(value, error) from error
                if writers:  # a sink has none, and a loop over nothing is not free
                    for writer in writers:
                        if writer.is_blocked:
                            return
        finally:
            self.num_records_in += num_records

    def _counter(self, node: ChainNode, output: Output) -> CountingOutput:
        counter = FastCountingOutput(output, node.operator.fail, self._forms)
        self._forms[id(node.operator)] = batch_form(node.operator, counter)
        return counter
