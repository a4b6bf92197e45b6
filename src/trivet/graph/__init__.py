"""What is connected with this?

*Useful for* answers that share no word and no meaning with the question but stand one step behind what does: the
composer's birthplace behind the film. *Not useful for* finding by itself: a walk needs somewhere to begin, and what it
reaches is only as good as that. ``block.py`` holds who names what, ``walk.py`` goes from the seeds to what they lead
to. No store in here: arrays and numbers in, numbers out.
"""
