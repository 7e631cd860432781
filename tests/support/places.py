"""Folders of the checkout that tests read."""

from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
SHARED = PROJECT.parent / "shared"  # published tables, texts and tokenizers; `shared_data` skips where they are missing
PACKAGE = PROJECT / "rbpx"
LADDER = PACKAGE / "ladder"
CONF = PROJECT / "conf"
EXPERIMENTS = PROJECT / "experiments"
PUBLISHED = EXPERIMENTS / "published"
DOCS = PROJECT / "docs"
