"""How is the engine asked over HTTP? (``trivet serve``)"""
