"""Checkpoints of one training in; its law after a warm-up, and what each token went through, out."""
