"""English that every Python carries: the topics of its help."""

import importlib


def paragraphs() -> list[str]:
    """The paragraphs, each in one line; some are code."""
    topics = importlib.import_module("pydoc_data.topics").topics
    lines = (" ".join(part.split()) for topic in topics.values() for part in topic.split("\n\n"))
    return [line for line in lines if line]
