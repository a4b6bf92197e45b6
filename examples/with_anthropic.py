"""trivet as the memory tool of Claude. Needs `pip install 'trivet[anthropic]'`; these commands need no API key."""

from __future__ import annotations

from trivet.integrations.anthropic import TrivetMemoryTool

PATH = "/memories/customers/ana.md"


def main() -> None:
    memory = TrivetMemoryTool(":memory:")
    # client.beta.messages.tool_runner(tools=[memory], …) lets the model call it; here are the calls that it makes
    print(memory.call({"command": "create", "path": PATH, "file_text": "Ana prefers invoices on paper.\n"}))
    text = "She is in the office on Tuesdays."
    memory.call({"command": "insert", "path": PATH, "insert_line": 1, "insert_text": text})
    print(memory.call({"command": "view", "path": PATH}))
    print(memory.engine.search("how does she want her bills?")[0].id)  # as `trivet search` does
    memory.engine.close()


if __name__ == "__main__":
    main()
