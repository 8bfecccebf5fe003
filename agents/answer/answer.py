"""Answer of the whole decision: the plan, its rivals of other families, and the reasons."""

from dataclasses import dataclass

from agents.answer.answer_dict import answer_dict
from agents.answer.answer_facts import AnswerFacts
from agents.answer.page import sections_of
from agents.answer.sections import as_html, as_text


@dataclass(frozen=True, kw_only=True)
class Answer(AnswerFacts):
    """A decision over all families allowed; as text it is the page for people."""

    def as_dict(self) -> dict[str, object]:
        """Plain content, for JSON; domains by name."""
        return answer_dict(self)

    def __str__(self) -> str:
        return as_text(sections_of(self))

    def _repr_html_(self) -> str:
        """The page as HTML, which notebooks show."""
        return as_html(sections_of(self))
