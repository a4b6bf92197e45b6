"""trivet as the memory service of Google ADK. Needs `pip install 'trivet[google-adk]'`."""

from __future__ import annotations

import asyncio

from google.adk.events import Event
from google.adk.sessions import InMemorySessionService
from google.genai.types import Content, Part

from trivet.integrations.google_adk import TrivetMemoryService

APP = "greenhouse"
SAID = (
    ("user", "The greenhouse door sticks when it rains."),
    ("helper", "Plane its lower edge by two millimetres."),
    ("user", "The irrigation pump is the quieter one now."),
)


async def main() -> None:
    memory = TrivetMemoryService(":memory:", k=1)  # Runner(…, memory_service=memory) gives it to the agents
    sessions = InMemorySessionService()
    for user in ("ana", "ben"):
        session = await sessions.create_session(app_name=APP, user_id=user)
        for author, text in SAID if user == "ana" else SAID[:1]:
            role = "user" if author == "user" else "model"
            event = Event(author=author, content=Content(role=role, parts=[Part(text=text)]))
            await sessions.append_event(session, event)
        await memory.add_session_to_memory(session)

    for user in ("ana", "ben", "carl"):
        found = await memory.search_memory(app_name=APP, user_id=user, query="which pump do we have?")
        print(user, [f"{entry.author}: {entry.content.parts[0].text}" for entry in found.memories])
    memory.engine.close()


if __name__ == "__main__":
    asyncio.run(main())
