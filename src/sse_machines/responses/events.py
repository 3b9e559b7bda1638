"""OpenAI Responses: the events.

Source: OpenAI's API reference, "Streaming events" of the Responses API, all types that the official SDK
(openai 3.57) names, and those that OpenAI is recorded to send beside them (``keepalive``, the diffs of
``apply_patch_call``). Nothing here knows in which order events may come, or how JSON becomes an event.

Each class of the wire stands under a class of `roles`, with the fields: whoever wants all pieces of text
matches on `TextDelta`, whoever wants only the answer's on `OutputTextDelta`. Class names follow from
wire names: ``response.output_text.delta`` is `OutputTextDelta`.
"""

from __future__ import annotations

from typing import Any, ClassVar

import attrs

from .._protocol import Comment, EndOfStream, ErrorInfo, JSONObject, Unknown, Violation
from .roles import (
    RETRYABLE,
    CommandEvent,
    ContentPartEvent,
    InputDelta,
    InputDone,
    ItemEvent,
    LifecycleEvent,
    OutputDelta,
    OutputItemEvent,
    SequencedEvent,
    StatusEvent,
    SummaryPartEvent,
    TextDelta,
    TextDone,
)


@attrs.frozen(kw_only=True)
class Created(LifecycleEvent):
    """The response begins."""

    type: ClassVar[str] = "response.created"


@attrs.frozen(kw_only=True)
class Queued(LifecycleEvent):
    """The response waits to be worked on."""

    type: ClassVar[str] = "response.queued"


@attrs.frozen(kw_only=True)
class InProgress(LifecycleEvent):
    """The response is being worked on."""

    type: ClassVar[str] = "response.in_progress"


@attrs.frozen(kw_only=True)
class Completed(LifecycleEvent):
    """The response is complete; nothing follows."""

    type: ClassVar[str] = "response.completed"


@attrs.frozen(kw_only=True)
class Incomplete(LifecycleEvent):
    """The model was stopped early; nothing follows."""

    type: ClassVar[str] = "response.incomplete"


@attrs.frozen(kw_only=True)
class Failed(LifecycleEvent):
    """The response has failed; nothing follows."""

    type: ClassVar[str] = "response.failed"


@attrs.frozen(kw_only=True)
class Cancelled(LifecycleEvent):
    """The response was cancelled. Not published; seen from other servers."""

    type: ClassVar[str] = "response.cancelled"


@attrs.frozen(kw_only=True)
class Done(LifecycleEvent):
    """The response is over, in whatever ``status``. Not published; seen from xAI.

    The end mark ``data: [DONE]`` is another event; here it is never more than a deviation.
    """

    type: ClassVar[str] = "response.done"


@attrs.frozen(kw_only=True)
class OutputItemAdded(OutputItemEvent):
    """An item begins."""

    type: ClassVar[str] = "response.output_item.added"


@attrs.frozen(kw_only=True)
class OutputItemDone(OutputItemEvent):
    """An item is complete; ``item`` is the truth, whatever its pieces were."""

    type: ClassVar[str] = "response.output_item.done"


@attrs.frozen(kw_only=True)
class ContentPartAdded(ContentPartEvent):
    """A part of a message, or of a reasoning, begins."""

    type: ClassVar[str] = "response.content_part.added"


@attrs.frozen(kw_only=True)
class ContentPartDone(ContentPartEvent):
    """A part of a message, or of a reasoning, is complete."""

    type: ClassVar[str] = "response.content_part.done"


@attrs.frozen(kw_only=True)
class ReasoningPartAdded(ContentPartEvent):
    """A part of a reasoning begins. Not published; vLLM's name for `ContentPartAdded`."""

    type: ClassVar[str] = "response.reasoning_part.added"


@attrs.frozen(kw_only=True)
class ReasoningPartDone(ContentPartEvent):
    """A part of a reasoning is complete. Not published; vLLM's name for `ContentPartDone`."""

    type: ClassVar[str] = "response.reasoning_part.done"


@attrs.frozen(kw_only=True)
class ReasoningSummaryPartAdded(SummaryPartEvent):
    """A part of a summary begins."""

    type: ClassVar[str] = "response.reasoning_summary_part.added"


@attrs.frozen(kw_only=True)
class ReasoningSummaryPartDone(SummaryPartEvent):
    """A part of a summary is complete, or was cut; then the payload's ``status`` says so."""

    type: ClassVar[str] = "response.reasoning_summary_part.done"


@attrs.frozen(kw_only=True)
class OutputTextDelta(TextDelta):
    """A piece of the answer's text."""

    type: ClassVar[str] = "response.output_text.delta"


@attrs.frozen(kw_only=True)
class RefusalDelta(TextDelta):
    """A piece of a refusal."""

    type: ClassVar[str] = "response.refusal.delta"


@attrs.frozen(kw_only=True)
class ReasoningTextDelta(TextDelta):
    """A piece of a reasoning, from servers that show it."""

    type: ClassVar[str] = "response.reasoning_text.delta"


@attrs.frozen(kw_only=True)
class OutputTextDone(TextDone):
    """The whole text of a part."""

    type: ClassVar[str] = "response.output_text.done"
    text: str


@attrs.frozen(kw_only=True)
class RefusalDone(TextDone):
    """The whole refusal of a part."""

    type: ClassVar[str] = "response.refusal.done"
    refusal: str


@attrs.frozen(kw_only=True)
class ReasoningTextDone(TextDone):
    """The whole reasoning of a part."""

    type: ClassVar[str] = "response.reasoning_text.done"
    text: str


@attrs.frozen(kw_only=True)
class OutputTextAnnotationAdded(ItemEvent):
    """An annotation of the answer's text, such as a citation."""

    type: ClassVar[str] = "response.output_text.annotation.added"
    item_id: str | None = None
    content_index: int
    annotation_index: int
    annotation: Any = None


@attrs.frozen(kw_only=True)
class ReasoningSummaryTextDelta(ItemEvent):
    """A piece of a part of a summary."""

    type: ClassVar[str] = "response.reasoning_summary_text.delta"
    item_id: str | None = None
    summary_index: int
    delta: str


@attrs.frozen(kw_only=True)
class ReasoningSummaryTextDone(ItemEvent):
    """The whole text of a part of a summary."""

    type: ClassVar[str] = "response.reasoning_summary_text.done"
    item_id: str | None = None
    summary_index: int
    text: str


@attrs.frozen(kw_only=True)
class FunctionCallArgumentsDelta(InputDelta):
    """A piece of the arguments of a function call: a piece of JSON text."""

    type: ClassVar[str] = "response.function_call_arguments.delta"


@attrs.frozen(kw_only=True)
class FunctionCallArgumentsDone(InputDone):
    """The whole arguments of a function call."""

    type: ClassVar[str] = "response.function_call_arguments.done"
    arguments: str


@attrs.frozen(kw_only=True)
class McpCallArgumentsDelta(InputDelta):
    """A piece of the arguments of a call to an MCP server."""

    type: ClassVar[str] = "response.mcp_call_arguments.delta"


@attrs.frozen(kw_only=True)
class McpCallArgumentsDone(InputDone):
    """The whole arguments of a call to an MCP server."""

    type: ClassVar[str] = "response.mcp_call_arguments.done"
    arguments: str


@attrs.frozen(kw_only=True)
class CustomToolCallInputDelta(InputDelta):
    """A piece of the input of a custom tool: free text."""

    type: ClassVar[str] = "response.custom_tool_call_input.delta"


@attrs.frozen(kw_only=True)
class CustomToolCallInputDone(InputDone):
    """The whole input of a custom tool."""

    type: ClassVar[str] = "response.custom_tool_call_input.done"
    input: str


@attrs.frozen(kw_only=True)
class CodeInterpreterCallCodeDelta(InputDelta):
    """A piece of the code that the interpreter is given; null counts as nothing."""

    type: ClassVar[str] = "response.code_interpreter_call_code.delta"


@attrs.frozen(kw_only=True)
class CodeInterpreterCallCodeDone(InputDone):
    """The whole code that the interpreter is given."""

    type: ClassVar[str] = "response.code_interpreter_call_code.done"
    code: str


@attrs.frozen(kw_only=True)
class ApplyPatchCallOperationDiffDelta(InputDelta):
    """A piece of a diff. Not published; recorded from OpenAI."""

    type: ClassVar[str] = "response.apply_patch_call_operation_diff.delta"


@attrs.frozen(kw_only=True)
class ApplyPatchCallOperationDiffDone(InputDone):
    """The whole diff. Not published; recorded from OpenAI."""

    type: ClassVar[str] = "response.apply_patch_call_operation_diff.done"
    diff: str


@attrs.frozen(kw_only=True)
class ShellCallCommandAdded(CommandEvent):
    """A command begins."""

    type: ClassVar[str] = "response.shell_call_command.added"
    command: str


@attrs.frozen(kw_only=True)
class ShellCallCommandDelta(CommandEvent):
    """A piece of a command."""

    type: ClassVar[str] = "response.shell_call_command.delta"
    delta: str


@attrs.frozen(kw_only=True)
class ShellCallCommandDone(CommandEvent):
    """The whole command."""

    type: ClassVar[str] = "response.shell_call_command.done"
    command: str


@attrs.frozen(kw_only=True)
class ShellCallOutputContentDelta(CommandEvent):
    """A piece of what a command printed."""

    type: ClassVar[str] = "response.shell_call_output_content.delta"
    item_id: str | None = None
    delta: OutputDelta


@attrs.frozen(kw_only=True)
class ShellCallOutputContentDone(CommandEvent):
    """All that a command printed, and how it ended."""

    type: ClassVar[str] = "response.shell_call_output_content.done"
    item_id: str | None = None
    output: list[JSONObject]


@attrs.frozen(kw_only=True)
class ImageGenerationCallPartialImage(ItemEvent):
    """An image while it comes into being."""

    type: ClassVar[str] = "response.image_generation_call.partial_image"
    item_id: str | None = None
    partial_image_index: int
    partial_image_b64: str


@attrs.frozen(kw_only=True)
class CodeInterpreterCallInProgress(StatusEvent):
    type: ClassVar[str] = "response.code_interpreter_call.in_progress"


@attrs.frozen(kw_only=True)
class CodeInterpreterCallInterpreting(StatusEvent):
    type: ClassVar[str] = "response.code_interpreter_call.interpreting"


@attrs.frozen(kw_only=True)
class CodeInterpreterCallCompleted(StatusEvent):
    type: ClassVar[str] = "response.code_interpreter_call.completed"


@attrs.frozen(kw_only=True)
class FileSearchCallInProgress(StatusEvent):
    type: ClassVar[str] = "response.file_search_call.in_progress"


@attrs.frozen(kw_only=True)
class FileSearchCallSearching(StatusEvent):
    type: ClassVar[str] = "response.file_search_call.searching"


@attrs.frozen(kw_only=True)
class FileSearchCallCompleted(StatusEvent):
    type: ClassVar[str] = "response.file_search_call.completed"


@attrs.frozen(kw_only=True)
class ImageGenerationCallInProgress(StatusEvent):
    type: ClassVar[str] = "response.image_generation_call.in_progress"


@attrs.frozen(kw_only=True)
class ImageGenerationCallGenerating(StatusEvent):
    type: ClassVar[str] = "response.image_generation_call.generating"


@attrs.frozen(kw_only=True)
class ImageGenerationCallCompleted(StatusEvent):
    type: ClassVar[str] = "response.image_generation_call.completed"


@attrs.frozen(kw_only=True)
class McpCallInProgress(StatusEvent):
    type: ClassVar[str] = "response.mcp_call.in_progress"


@attrs.frozen(kw_only=True)
class McpCallCompleted(StatusEvent):
    type: ClassVar[str] = "response.mcp_call.completed"


@attrs.frozen(kw_only=True)
class McpCallFailed(StatusEvent):
    type: ClassVar[str] = "response.mcp_call.failed"


@attrs.frozen(kw_only=True)
class McpListToolsInProgress(StatusEvent):
    type: ClassVar[str] = "response.mcp_list_tools.in_progress"


@attrs.frozen(kw_only=True)
class McpListToolsCompleted(StatusEvent):
    type: ClassVar[str] = "response.mcp_list_tools.completed"


@attrs.frozen(kw_only=True)
class McpListToolsFailed(StatusEvent):
    type: ClassVar[str] = "response.mcp_list_tools.failed"


@attrs.frozen(kw_only=True)
class WebSearchCallInProgress(StatusEvent):
    type: ClassVar[str] = "response.web_search_call.in_progress"


@attrs.frozen(kw_only=True)
class WebSearchCallSearching(StatusEvent):
    type: ClassVar[str] = "response.web_search_call.searching"


@attrs.frozen(kw_only=True)
class WebSearchCallCompleted(StatusEvent):
    type: ClassVar[str] = "response.web_search_call.completed"


@attrs.frozen(kw_only=True)
class CompactionCompacting(ItemEvent):
    """The conversation is being compacted; may come more than once."""

    type: ClassVar[str] = "response.compaction.compacting"
    item_id: str | None = None


@attrs.frozen(kw_only=True)
class AudioDelta(SequencedEvent):
    """A piece of sound, in Base64."""

    type: ClassVar[str] = "response.audio.delta"
    delta: str


@attrs.frozen(kw_only=True)
class AudioDone(SequencedEvent):
    """The sound is complete."""

    type: ClassVar[str] = "response.audio.done"


@attrs.frozen(kw_only=True)
class AudioTranscriptDelta(SequencedEvent):
    """A piece of what is said."""

    type: ClassVar[str] = "response.audio.transcript.delta"
    delta: str


@attrs.frozen(kw_only=True)
class AudioTranscriptDone(SequencedEvent):
    """What is said is complete."""

    type: ClassVar[str] = "response.audio.transcript.done"


@attrs.frozen(kw_only=True)
class Keepalive(SequencedEvent):
    """A sign of life. Not published; OpenAI sends and numbers it."""

    type: ClassVar[str] = "keepalive"


@attrs.frozen(kw_only=True)
class Error(SequencedEvent):
    """The answer has failed. OpenAI lets a ``response.failed`` follow.

    ``error`` has ``code``, ``message`` and ``param``, and where the server nests it, as OpenAI does in
    spite of its reference, ``type`` too.
    """

    type: ClassVar[str] = "error"
    error: Any

    @property
    def info(self) -> ErrorInfo:
        """The error in the same terms for all protocols."""
        return ErrorInfo.of(self.error, RETRYABLE)


PUBLISHED: tuple[type[SequencedEvent], ...] = (
    *(AudioDelta, AudioDone, AudioTranscriptDelta, AudioTranscriptDone),
    *(ContentPartAdded, ContentPartDone, Error, OutputItemAdded, OutputItemDone),
    *(CodeInterpreterCallCompleted, CodeInterpreterCallInProgress, CodeInterpreterCallInterpreting),
    *(CodeInterpreterCallCodeDelta, CodeInterpreterCallCodeDone, CompactionCompacting),
    *(CustomToolCallInputDelta, CustomToolCallInputDone),
    *(FileSearchCallCompleted, FileSearchCallInProgress, FileSearchCallSearching),
    *(FunctionCallArgumentsDelta, FunctionCallArgumentsDone),
    *(ImageGenerationCallCompleted, ImageGenerationCallGenerating, ImageGenerationCallInProgress),
    *(ImageGenerationCallPartialImage, McpCallCompleted, McpCallFailed, McpCallInProgress),
    *(McpCallArgumentsDelta, McpCallArgumentsDone),
    *(McpListToolsCompleted, McpListToolsFailed, McpListToolsInProgress),
    *(OutputTextAnnotationAdded, OutputTextDelta, OutputTextDone),
    *(ReasoningSummaryTextDelta, ReasoningSummaryTextDone, ReasoningTextDelta, ReasoningTextDone),
    *(RefusalDelta, RefusalDone, ShellCallCommandAdded, ShellCallCommandDelta, ShellCallCommandDone),
    *(ShellCallOutputContentDelta, ShellCallOutputContentDone),
    *(WebSearchCallCompleted, WebSearchCallInProgress, WebSearchCallSearching),
    *(Completed, Created, Failed, InProgress, Incomplete, Queued),
    *(ReasoningSummaryPartAdded, ReasoningSummaryPartDone),
)
"""The classes of the published event types."""

UNPUBLISHED: tuple[type[SequencedEvent], ...] = (
    *(Keepalive, ApplyPatchCallOperationDiffDelta, ApplyPatchCallOperationDiffDone),
    *(ReasoningPartAdded, ReasoningPartDone, Cancelled, Done),
)
"""The classes of event types that are only seen: three from OpenAI, four from others."""

AnyEvent = (
    Created
    | Queued
    | InProgress
    | Completed
    | Incomplete
    | Failed
    | Cancelled
    | Done
    | OutputItemAdded
    | OutputItemDone
    | ContentPartAdded
    | ContentPartDone
    | ReasoningPartAdded
    | ReasoningPartDone
    | ReasoningSummaryPartAdded
    | ReasoningSummaryPartDone
    | OutputTextDelta
    | RefusalDelta
    | ReasoningTextDelta
    | OutputTextDone
    | RefusalDone
    | ReasoningTextDone
    | OutputTextAnnotationAdded
    | ReasoningSummaryTextDelta
    | ReasoningSummaryTextDone
    | FunctionCallArgumentsDelta
    | FunctionCallArgumentsDone
    | McpCallArgumentsDelta
    | McpCallArgumentsDone
    | CustomToolCallInputDelta
    | CustomToolCallInputDone
    | CodeInterpreterCallCodeDelta
    | CodeInterpreterCallCodeDone
    | ApplyPatchCallOperationDiffDelta
    | ApplyPatchCallOperationDiffDone
    | ShellCallCommandAdded
    | ShellCallCommandDelta
    | ShellCallCommandDone
    | ShellCallOutputContentDelta
    | ShellCallOutputContentDone
    | ImageGenerationCallPartialImage
    | CodeInterpreterCallInProgress
    | CodeInterpreterCallInterpreting
    | CodeInterpreterCallCompleted
    | FileSearchCallInProgress
    | FileSearchCallSearching
    | FileSearchCallCompleted
    | ImageGenerationCallInProgress
    | ImageGenerationCallGenerating
    | ImageGenerationCallCompleted
    | McpCallInProgress
    | McpCallCompleted
    | McpCallFailed
    | McpListToolsInProgress
    | McpListToolsCompleted
    | McpListToolsFailed
    | WebSearchCallInProgress
    | WebSearchCallSearching
    | WebSearchCallCompleted
    | CompactionCompacting
    | AudioDelta
    | AudioDone
    | AudioTranscriptDelta
    | AudioTranscriptDone
    | Keepalive
    | Error
    | Unknown
    | Comment
    | Violation
    | EndOfStream
)
"""Everything that a receiver of this protocol can give out."""
