"""Other tools' benchmark results in, our records out: one file a format, one row of the table in `formats.py` each."""
