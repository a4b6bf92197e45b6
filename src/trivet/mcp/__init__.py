"""The MCP server: tools, resources and prompts over one collection (``trivet mcp``)."""
