"""How does a memory behave, beyond being found?

Pure parts: ``succession`` (what stands in a superseded document's place), ``likeness`` (does this say nearly what that
says?), ``redaction`` (secrets out, before anything is stored); and ``remembering``, which puts them to use.
"""
