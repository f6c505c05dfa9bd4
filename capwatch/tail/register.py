"""Register: which content lives in which file, over renames, copies, truncations, deletions and restarts."""

import os
from collections import Counter
from collections.abc import Collection
from math import inf

from capwatch.tail.blocks import last_line_end
from capwatch.tail.content import Content
from capwatch.tail.descriptors import Descriptors, open_file, own_descriptor
from capwatch.tail.fingerprint import HEAD, START, Sample, mark_at, marks_upto
from capwatch.tail.kin import Kin, Kinship, beside, homeless, unchanged
from capwatch.tail.names import File, listing, stem
from capwatch.tail.position import FileId, Position, Saved
from capwatch.tail.settings import Settings


class Register:
    """The contents of one source and the files that hold them. Errors of files are noted in the content, not raised."""

    def __init__(self, settings: Settings, saved: Saved | None) -> None:
        self._settings = settings
        self._first = saved is None  # `start` is for files that exist at the first scan ever
        self.next_number = saved.next_number if saved else 0
        positions = saved.positions if saved else {}
        self.contents = {number: Content(number, position, -inf) for number, position in positions.items()}
        self.files: dict[FileId, Content] = {}  # the contents that a file holds
        self.open_files = Descriptors(settings.max_open)
        self.names = {content.path: content.id for content in self.contents.values()}  # which file had a name last
        self.lost = Counter(saved.bytes_lost if saved else {})
        self.skipped = saved.bytes_skipped if saved else 0
        self.rotations = saved.rotations if saved else 0
        self.truncations = saved.truncations if saved else 0
        self.changed = True  # files and contents no longer match: a scan is due

    def scan(self, now: float) -> None:
        """Look at the globs: follow renames, adopt new files, give up what has been gone for long."""
        self.changed = False
        found = listing(self._settings.globs)
        for content in list(self.files.values()):
            if content.id in found:
                content.found(found[content.id], now)
            else:
                self._unlisted(content, now)
        tried: set[FileId] = set()
        # more than once: comparing may show that a file already known was truncated
        while loose := [file for file in found.values() if file.id not in self.files and file.id not in tried]:
            tried |= {file.id for file in loose}
            # the longest first: of several copies it is the one with everything in it
            self._adopt(sorted(loose, key=lambda file: (-file.size, file.paths)), now)
        self._first = False
        self._expire(now)
        self._remember_names(found.values())

    def open(self, content: Content) -> bool:
        """Make sure that it has a descriptor; False where it cannot be had, with the reason noted."""
        if content.fd is None:
            try:
                self.open_files.hold(content, open_file(content.path, content.id))
            except FileNotFoundError:
                self.changed = True
                content.due = inf
                return False
            except OSError as error:
                self.failed(content, error)
                return False
        return True

    def failed(self, content: Content, error: OSError) -> None:
        """Note why it cannot be read; the next scan tries again."""
        self.open_files.close(content)
        content.problem = f"{content.path}: {error.strerror}"
        content.due, content.seen = inf, (-1, 0)

    def truncated(self, content: Content, now: float) -> None:
        """Its file holds something else now: look for a copy, and read the file from its beginning."""
        self.truncations += 1
        content.cut, content.loss = True, "truncated"
        self.release(content, now)

    def lose(self, count: int, reason: str) -> None:
        """So many bytes will never be read."""
        if count > 0:
            self.lost[reason] += count

    def release(self, content: Content, now: float) -> None:
        """No file holds it any more."""
        self.open_files.close(content)
        del self.files[content.id]
        content.bound = content.listed = False
        content.problem, content.moved = None, now
        self.changed = True

    def identify(self, blank: Content, size: int, now: float) -> bool:
        """A file that was empty got its first bytes: is this a new content? If not, `blank` is gone. Raises OSError."""
        fd = own_descriptor(blank)
        self.open_files.close(blank)
        file = File(blank.id, (blank.path,), size, blank.mtime_ns)
        kin = Kin(each for each in self.contents.values() if not each.blank)
        if self._place(file, fd, kin, blank, now) is blank:
            self.names[blank.path] = blank.id
            return True
        if blank.bound:
            self.release(blank, now)
        del self.contents[blank.number]
        return False

    def pass_over(self, content: Content, fd: int) -> None:
        """`start: end`: begin behind the last whole line that was there at the first ever start. Raises OSError."""
        end = last_line_end(fd, content.pass_to)
        content.marks = marks_upto(fd, end)
        content.at = content.taken = mark_at(fd, end)
        content.searched, content.pass_to = end, 0
        self.skipped += end

    def _unlisted(self, content: Content, now: float) -> None:
        """No name leads to its file any more: read on through the descriptor, where there is one."""
        if content.fd is None:
            self.release(content, now)
        elif content.listed:
            content.listed, content.rotated = False, True
            content.moved = content.due = now  # before its successor is read

    def _adopt(self, loose: list[File], now: float) -> None:
        """Find out what each file without a known content holds; those whose inode is known come first."""
        away = [each for each in self.contents.values() if not each.bound and not each.cut]
        by_id = {each.id: each for each in sorted(away, key=lambda each: (not each.vanished, each.number))}
        strange = [file for file in loose if not self._resume(by_id.get(file.id), file, now)]
        if not strange:
            return
        kin = Kin(each for each in self.contents.values() if not each.blank)
        for file in strange:
            try:
                fd = open_file(file.paths[0], file.id)
                # its size now: a copy may have grown since it was listed
                self._place(file._replace(size=os.fstat(fd).st_size), fd, kin, None, now)
            except FileNotFoundError:
                self.changed = True
            except OSError as error:
                self.failed(self._bind(self._new(file, now), file, None, now), error)

    def _resume(self, content: Content | None, file: File, now: float) -> bool:
        """The inode is known, from before a restart or a disappearance: is the content the same still?"""
        if content is None or not (content.marks or content.moved == -inf):
            return False  # less than 64 bytes tell nothing but over a restart: inodes are used again
        try:
            fd = open_file(file.paths[0], file.id)
            same, size = _holds(fd, content)
        except OSError as error:
            self.failed(self._bind(content, file, None, now), error)
            return True
        if same:
            self._bind(content, file._replace(size=size), fd, now)
            return True
        os.close(fd)
        if not content.vanished:
            content.cut = True
            if content.path in file.paths:  # else the inode may have been given to a new file
                self.truncations += 1
                content.loss = "truncated"
        return False

    def _place(self, file: File, fd: int, kin: Kin, blank: Content | None, now: float) -> Content | None:
        """Bind an open file to the content it holds, to a new one where that is none known; None for a mere copy.

        Raises OSError, with the descriptor closed and nothing changed.
        """
        try:
            kinship, content = self._related(file, Sample(fd, file.size), kin, now)
            past = kinship is Kinship.PAST
            at = mark_at(fd, file.size) if past else START
            marks = marks_upto(fd, file.size if past else min(file.size, HEAD))
        except OSError:
            os.close(fd)
            raise
        if kinship is Kinship.COPY:
            os.close(fd)
            return None
        if content is not None and kinship is Kinship.SAME:
            for each in (blank, content):
                if each is not None and each.bound:
                    self.release(each, now)
            return self._bind(content, file, fd, now)
        if kinship is None and file.size:
            self.rotations += self._replaces(file)
        fresh = self._bind(blank or self._new(file, now), file, fd, now)
        fresh.marks = marks
        if past:
            fresh.at = fresh.taken = at
            fresh.searched = at.end
        if file.size:
            kin.add(fresh)
        return fresh

    def _related(self, file: File, sample: Sample, kin: Kin, now: float) -> tuple[Kinship | None, Content | None]:
        """The first relation to a content already known."""
        for content in kin.of(file, sample) if sample.size else ():
            kinship = None
            if content.bound:
                try:
                    kinship = beside(content, file, sample, own_descriptor)
                except OSError:
                    kinship = Kinship.COPY if content.marks else None  # as far as can be told now
                if kinship is Kinship.BROKEN:
                    self.truncated(content, now)
            if not content.bound:
                kinship = homeless(content, file, sample)
            if kinship is not None:
                return kinship, content
        return None, None

    def _new(self, file: File, now: float) -> Content:
        pass_to = file.size if self._first and self._settings.start == "end" else 0
        content = Content(self.next_number, Position(*file.id, file.paths[0], pass_to=pass_to), now)
        self.contents[self.next_number] = content
        self.next_number += 1
        return content

    def _bind(self, content: Content, file: File, fd: int | None, now: float) -> Content:
        """From now on this file holds the content."""
        self.files[file.id] = content
        self.lose(content.size - max(file.size, content.at.end), content.loss)  # written after the copy was made
        content.bind(file, now)
        if fd is not None:
            self.open_files.hold(content, fd)
        return content

    def _expire(self, now: float) -> None:
        """Contents without a file: their unread bytes are lost after a while, the rest is remembered, in bounds."""
        for content in list(self.contents.values()):
            if content.bound or content.vanished:
                continue
            content.moved = max(content.moved, now) if content.moved == -inf else content.moved
            wait = self._settings.copy_wait if content.cut else self._settings.grace
            if now - content.moved >= wait:
                self._give_up(content)
        vanished = [content for content in self.contents.values() if content.vanished]
        for content in vanished[: max(0, len(vanished) - self._settings.remembered)]:
            del self.contents[content.number]

    def _give_up(self, content: Content) -> None:
        """No file with the rest of it will come; known again, should what was read turn up once more."""
        self.lose(content.size - content.at.end, content.loss)
        content.size = content.at.end
        if not content.marks and content.taken == content.at:  # too short to be known again
            del self.contents[content.number]
        elif content.taken == content.at:  # else blocks are still on their way through the pipeline
            content.vanished = True

    def _remember_names(self, found: Collection[File]) -> None:
        """Which file had a name last, for the names in use and those just left: a new file there is a rotation.

        A file that is still empty has not taken over yet.
        """
        self.names |= {path: file.id for file in found for path in file.paths if not self._blank(file.id)}
        used = {path for file in found for path in file.paths}
        used |= {path for content in self.contents.values() for path in (content.path, content.was)}
        self.names = {path: file_id for path, file_id in self.names.items() if path in used}

    def _replaces(self, file: File) -> bool:
        """Whether a new content came by a rotation: its name was another's, or it was rotated before it was seen."""
        taken = any(self.names.get(path, file.id) != file.id for path in file.paths)
        return taken or any(stem(path) != path and stem(path) in self.names for path in file.paths)

    def _blank(self, file_id: FileId) -> bool:
        return file_id in self.files and self.files[file_id].blank


def _holds(fd: int, content: Content) -> tuple[bool, int]:
    """Whether an open file with the content's own inode still holds it, and its size. Raises OSError, then closed."""
    try:
        sample = Sample(fd, os.fstat(fd).st_size)
        return unchanged(content, sample) and sample.agrees(content.marks), sample.size
    except OSError:
        os.close(fd)
        raise
