"""PyTorch in, Graph out. Everything in this package imports torch, so nothing outside it may import it at import time."""
