"""Answers for people: the whole decision with its reasons, as a value, a page of text and JSON."""
