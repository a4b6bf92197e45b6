"""What can an agent do with a collection?

The Model Context Protocol over the engine: a few tools, documents as resources, prompts that teach the memory
protocol. ``tools`` says what can be done, ``server`` turns a request into an answer, ``transports`` carries both.
"""
