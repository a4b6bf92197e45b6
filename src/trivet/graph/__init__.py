"""The graph of documents and concepts, in memory and without a store: arrays in, scores out.

It finds documents that share no word and no meaning with the query but are connected with one that does, such as the
birthplace of a composer behind the film. ``mentions.py`` holds which document names which concept, ``walk.py`` goes
from the seeds to what they lead to, ``supersession.py`` replaces documents by the newer ones that supersede them.
"""
