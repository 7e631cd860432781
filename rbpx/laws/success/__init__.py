"""Success at a task as a sigmoid in a feature such as loss: fits and predictions."""
