"""Success at a task against a feature: fits a sigmoid and predicts from it."""
