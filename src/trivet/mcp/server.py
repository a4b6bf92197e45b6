"""The MCP server of one collection, on the SDK's low-level server (ADR 32 says why).

The engine is synchronous and thread-safe, so every call runs in a thread. An error that the caller can correct is
returned with the engine's message, as a tool error. Any other error is logged on stderr and returned without details.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import anyio.to_thread
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError

from trivet import __version__
from trivet.concurrency import deadline
from trivet.errors import InputError, NotAllowedError, NotFoundError, TrivetError, without_paths
from trivet.mcp import arguments, delimiters, prompts, resources, tools
from trivet.mcp.tools import Memory

if TYPE_CHECKING:
    from trivet.filters import Filter

logger = logging.getLogger(__name__)

CALL_SECONDS = 30.0  # time limit of a call; the default of `trivet serve` for a request
BOUND_KEPT = 256  # memories bound to a filter, a few kilobytes each; enough for 256 tenants that search in turn
Context = ServerRequestContext[Any]
R = TypeVar("R")


def build(memory: Memory, keyed: bool = False) -> Server[Any]:
    """Return the server of one collection; with ``keyed``, each request carries the filter of its key."""
    handlers = Handlers(memory, keyed)
    return Server(
        "trivet",
        version=__version__,
        title="trivet memory",
        description="Long-term memory: searched by words and by meaning.",
        instructions=prompts.instructions(memory),
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_templates,
        on_read_resource=handlers.read_resource,
        on_list_prompts=handlers.list_prompts,
        on_get_prompt=handlers.get_prompt,
    )


class Handlers:
    """The handlers, one for each kind of request."""

    def __init__(self, memory: Memory, keyed: bool = False) -> None:
        self._memory, self._keyed = memory, keyed
        self._tools = tools.offered(memory)
        self._bound = lru_cache(BOUND_KEPT)(self._within)

    def _within(self, where: Filter) -> Memory:
        return replace(self._memory, engine=self._memory.engine.within(where))

    def _memory_of(self, context: Context) -> Memory:
        """Return the memory within the filter of the request's key."""
        if not self._keyed:
            return self._memory
        if context.request is None:  # ``transports.Guard`` checks HTTP requests; without one there is no key
            raise NotAllowedError("request: no key; send the message as an HTTP request of its own")
        where: Filter | None = context.request.state.where
        return self._memory if where is None else self._bound(where)

    async def list_tools(self, context: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_described(tool) for tool in self._tools.values()])

    async def call_tool(self, context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            output = await _in_thread(self._call, self._memory_of(context), params.name, params.arguments or {})
        except Exception as error:
            text = self._message(error, f"tool {params.name!r}")
            return types.CallToolResult(content=[types.TextContent(text=text)], is_error=True)
        structured = output.result.model_dump(mode="json")
        return types.CallToolResult(content=[types.TextContent(text=output.text)], structured_content=structured)

    def _call(self, memory: Memory, name: str, given: dict[str, Any]) -> tools.ToolOutput:
        tool = self._tools.get(name)
        if tool is None:
            why = " (the server is read-only)" if any(tool.name == name for tool in tools.TOOLS) else ""
            raise InputError(f"tool: {name!r} not found{why}; known: {', '.join(self._tools)}")
        return tool.run(memory, arguments.parse(tool.arguments, name, given))

    async def list_resources(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        return await self._run(context, resources.page, params.cursor if params else None)

    async def list_templates(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=resources.TEMPLATES)

    async def read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        return types.ReadResourceResult(contents=[await self._run(context, resources.content_of, str(params.uri))])

    async def list_prompts(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        return types.ListPromptsResult(
            prompts=[prompts.described(item) for item in prompts.offered(self._memory).values()]
        )

    async def get_prompt(self, context: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        return await self._run(context, prompts.rendered, params.name, params.arguments or {})

    async def _run(self, context: Context, function: Callable[..., R], *given: Any) -> R:
        """Run ``function`` in a thread; an error becomes a protocol error, because only tools have tool errors."""
        try:
            return await _in_thread(function, self._memory_of(context), *given)
        except Exception as error:
            code = types.INVALID_PARAMS if isinstance(error, InputError | NotFoundError) else types.INTERNAL_ERROR
            raise MCPError(code, self._message(error, function.__name__)) from None

    def _message(self, error: Exception, what: str) -> str:
        """Return one line without invisible characters and delimiters, because a message may quote stored text."""
        return delimiters.label(delimiters.line(self._reason(error, what)))

    def _reason(self, error: Exception, what: str) -> str:
        if isinstance(error, TrivetError):
            path = self._memory.engine.path  # clients must not learn where the store is
            message = str(error).replace(path, Path(path).name)
            return message if isinstance(error, InputError | NotFoundError) else without_paths(message)
        logger.error("%s failed", what, exc_info=error)
        return f"{what} failed unexpectedly ({type(error).__name__}); see the log of the server"


async def _in_thread(function: Callable[..., R], *given: Any) -> R:
    def limited() -> R:
        with deadline.limit(CALL_SECONDS):
            return function(*given)

    return await anyio.to_thread.run_sync(limited)


def _described(tool: tools.Tool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=arguments.schema(tool.arguments),
        output_schema=arguments.schema(tool.result, "serialization"),
        annotations=types.ToolAnnotations(
            title=tool.title,
            read_only_hint=tool.read_only,
            destructive_hint=tool.destructive,
            idempotent_hint=tool.idempotent,
            open_world_hint=tool.open_world,
        ),
    )
