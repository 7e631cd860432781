"""The forms that a law in size may have: fits and weighs each, and mixes their predictions."""
