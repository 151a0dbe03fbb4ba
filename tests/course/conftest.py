"""`--rewrite` writes the golden messages anew instead of comparing them."""

from __future__ import annotations


def pytest_addoption(parser):
    parser.addoption("--rewrite", action="store_true", help="rewrite golden files instead of comparing")
