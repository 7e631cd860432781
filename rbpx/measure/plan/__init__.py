"""What a grid would cost: tokens, FLOPs, memory, disk and time of each cell, without measuring it."""
