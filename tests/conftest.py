"""Settings of all tests."""

from hypothesis import settings

# How long an example takes says nothing about whether it holds, and the machine may be busy.
settings.register_profile("eastwest", deadline=None)
settings.register_profile("long", deadline=None, max_examples=5000)
settings.load_profile("eastwest")
