"""Kin: what a newly found file has to do with the contents already known."""

import os
from collections.abc import Callable, Iterable
from enum import Enum

from capwatch.tail.content import Content
from capwatch.tail.fingerprint import ENDS, HEAD, Sample
from capwatch.tail.names import File, stem


class Kinship(Enum):
    """The verdicts, apart from "no relation": such a file is read from its beginning."""

    SAME = "the content goes on in this file: moved, re-created, or the copy made before a truncation"
    COPY = "a copy of a content that is still followed where it is: leave it alone, look again later"
    PAST = "a copy of nothing but what was read already, and the original is gone"
    BROKEN = "the content is no longer in its own file, which was truncated: find it a new one first"


class Kin:
    """The contents by family and by beginning, so that a new file is compared with few of them."""

    def __init__(self, contents: Iterable[Content]) -> None:
        self._families: dict[str, list[Content]] = {}
        self._heads: dict[int, list[Content]] = {}
        for content in contents:
            self.add(content)

    def add(self, content: Content) -> None:
        """One more content to compare with."""
        self._families.setdefault(content.family, []).append(content)
        if content.head is not None:
            self._heads.setdefault(content.head.hash, []).append(content)

    def of(self, file: File, sample: Sample) -> list[Content]:
        """Who may hold the same bytes, the one that was read furthest first: of its family, and strangers with the same
        first 1,024 bytes. Raises OSError.
        """
        found = {content.number: content for content in self._families.get(stem(file.paths[0]), ())}
        if sample.size >= HEAD:
            found |= {content.number: content for content in self._heads.get(sample.at(HEAD).hash, ())}
        alike = [content for content in found.values() if content.id != file.id and sample.agrees(content.marks)]
        return sorted(alike, key=lambda content: -content.at.end)


def unchanged(content: Content, sample: Sample) -> bool:
    """Whether its own file still holds the content, or what a writer left of it that took back an unfinished line.

    Behind the first 1,024 bytes what stands before the position decides alone. Raises OSError.
    """
    if content.at.end >= HEAD:
        return sample.has(content.at)
    return (
        sample.has(content.at) and sample.agrees(content.marks) and (content.at.end > 0 or sample.size >= content.size)
    )


def homeless(content: Content, file: File, sample: Sample) -> Kinship | None:
    """The relation to a content that no file holds any more. Raises OSError.

    Where the file reaches the stored position, what stands before it decides; less than 64 bytes only tell something
    within a family, when the copy made before a truncation is sought. A shorter file can only be an older copy, never
    under the content's own name: 1,024 bytes must speak for it, after a truncation the 64 of the first mark.
    """
    copied = content.cut and not content.vanished
    compared = content.marks[0].end <= sample.size if content.marks else copied
    if compared and sample.has(content.at):
        return Kinship.SAME
    told = content.marks and (copied or (sample.size >= HEAD and not content.vanished))
    if compared and told and content.path not in file.paths:
        return Kinship.PAST
    return None


def beside(content: Content, file: File, sample: Sample, open_content: Callable[[Content], int]) -> Kinship | None:
    """The relation to a content that another file holds. Raises OSError.

    Two living files are one content if the shorter is wholly the beginning of the longer; the longer is followed.
    Once they part, they are two. A file that took over the name of a renamed one is the next, never a copy.
    """
    if content.listed and content.was in file.paths and content.path not in file.paths:
        return None
    fd = open_content(content)
    try:
        theirs = Sample(fd, os.fstat(fd).st_size)
        if not unchanged(content, theirs):
            return Kinship.BROKEN
        shared = min(sample.size, theirs.size)
        related = shared >= HEAD or (shared >= ENDS[0] and content.family == stem(file.paths[0]))
        if not related or sample.at(shared) != theirs.at(shared):
            return None
        longer = sample.size > theirs.size or (sample.size == theirs.size and not content.listed)
        return Kinship.SAME if longer else Kinship.COPY
    finally:
        os.close(fd)
