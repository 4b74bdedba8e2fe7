"""A path in, the text of the file out, of sane size: for documents that people and other tools write."""

from pathlib import Path

from rooflens.errors import EmptyError, FileError, FormatError

MAX_BYTES = 100_000_000


def read_text(path: str, what: str, limit: int = MAX_BYTES) -> str:
    """`what` is asked for, in the words of the cure."""
    try:
        file = Path(path)
        if file.is_dir():
            raise FileError(f"{path}: is a folder, not a file: name the file inside it")
        if file.stat().st_size > limit:
            raise FormatError(f"{path}: larger than {limit} bytes: give {what}")
        data = file.read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise FileError(f"{path}: cannot be read: {reason}: check the path") from None
    if b"\0" in data[:10_000]:
        raise FormatError(f"{path}: not text: give {what}, saved as UTF-8")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise FormatError(f"{path}: not UTF-8 text: give {what}, saved as UTF-8") from None
    if not text.strip():
        raise EmptyError(f"{path}: is empty: give {what}")
    return text
