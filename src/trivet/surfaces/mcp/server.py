"""How does a request become an answer?

The protocol's handlers over one collection. The engine is synchronous and safe to share, so every call runs in a
thread. What a caller can mend is told in the engine's own words, as a tool error; anything else is logged on stderr
and told without its insides.
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

from trivet import deadline
from trivet._version import __version__
from trivet.errors import InputError, NotAllowedError, NotFoundError, TrivetError, without_paths
from trivet.surfaces.mcp import arguments, fence, prompts, resources, tools
from trivet.surfaces.mcp.tools import Memory

if TYPE_CHECKING:
    from trivet.filters import Filter

logger = logging.getLogger(__name__)

CALL_SECONDS = 30.0  # what one call may take, as a request of `trivet serve` may unless it is told otherwise
BOUND_KEPT = 256  # memories bound to a filter, a few kilobytes each: as many tenants ask again and again
Context = ServerRequestContext[Any]
R = TypeVar("R")


def build(memory: Memory, keyed: bool = False) -> Server[Any]:
    """The server of one collection, for any transport; ``keyed``: each request says which filter binds it."""
    handlers = Handlers(memory, keyed)
    return Server(
        "trivet",
        version=__version__,
        title="trivet memory",
        description="Long-term memory: found by words and by meaning, every hit explained.",
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
    """One method a kind of request."""

    def __init__(self, memory: Memory, keyed: bool = False) -> None:
        self._memory, self._keyed = memory, keyed
        self._tools = tools.offered(memory)
        self._bound = lru_cache(BOUND_KEPT)(self._within)

    def _within(self, where: Filter) -> Memory:
        return replace(self._memory, engine=self._memory.engine.within(where))

    def _of(self, context: Context) -> Memory:
        """The memory that this request may see: within the filter of its key, where it has one."""
        if not self._keyed:
            return self._memory
        if context.request is None:  # the guard saw every request: what comes without one has no key
            raise NotAllowedError("request: it came without its key; send it as a request of its own")
        where: Filter | None = context.request.state.where
        return self._memory if where is None else self._bound(where)

    async def list_tools(self, context: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_described(tool) for tool in self._tools.values()])

    async def call_tool(self, context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            said = await _in_thread(self._called, self._of(context), params.name, params.arguments or {})
        except Exception as error:
            text = self._told(error, f"tool {params.name!r}")
            return types.CallToolResult(content=[types.TextContent(text=text)], is_error=True)
        structured = said.answer.model_dump(mode="json")
        return types.CallToolResult(content=[types.TextContent(text=said.text)], structured_content=structured)

    def _called(self, memory: Memory, name: str, given: dict[str, Any]) -> tools.Said:
        tool = self._tools.get(name)
        if tool is None:
            why = " (the server is read-only)" if any(tool.name == name for tool in tools.TOOLS) else ""
            raise InputError(f"tool: there is no {name!r}{why}; there are: {', '.join(self._tools)}")
        return tool.run(memory, arguments.read(tool.takes, name, given))

    async def list_resources(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        return await self._answer(context, resources.page, params.cursor if params else None)

    async def list_templates(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=resources.TEMPLATES)

    async def read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        return types.ReadResourceResult(contents=[await self._answer(context, resources.text_of, str(params.uri))])

    async def list_prompts(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        return types.ListPromptsResult(
            prompts=[prompts.listed(item) for item in prompts.offered(self._memory).values()]
        )

    async def get_prompt(self, context: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        return await self._answer(context, prompts.made, params.name, params.arguments or {})

    async def _answer(self, context: Context, function: Callable[..., R], *given: Any) -> R:
        """What is no tool has no tool error: it fails as the protocol says."""
        try:
            return await _in_thread(function, self._of(context), *given)
        except Exception as error:
            wrong = isinstance(error, InputError | NotFoundError)
            code = types.INVALID_PARAMS if wrong else types.INTERNAL_ERROR
            raise MCPError(code, self._told(error, function.__name__)) from None

    def _told(self, error: Exception, what: str) -> str:
        """One line. What it quotes was written by someone: nothing unseen and no mark of the fence is left in it."""
        return fence.label(fence.line(self._reason(error, what)))

    def _reason(self, error: Exception, what: str) -> str:
        if isinstance(error, TrivetError):
            path = self._memory.engine.path  # where the store lies is nobody's business but the server's
            said = str(error).replace(path, Path(path).name)
            return said if isinstance(error, InputError | NotFoundError) else without_paths(said)
        logger.error("%s failed", what, exc_info=error)
        return f"{what} failed unexpectedly ({type(error).__name__}); the server's log has the details"


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
        input_schema=arguments.schema(tool.takes),
        output_schema=arguments.schema(tool.gives, "serialization"),
        annotations=types.ToolAnnotations(
            title=tool.title,
            read_only_hint=tool.read_only,
            destructive_hint=tool.destructive,
            idempotent_hint=tool.idempotent,
            open_world_hint=tool.open_world,
        ),
    )
