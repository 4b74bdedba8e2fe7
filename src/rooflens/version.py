"""The version, alone, so that low rooms can name it without importing the public surface."""

__version__ = "0.1.0"
