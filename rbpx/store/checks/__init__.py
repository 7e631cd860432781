"""What is wrong with files of a store, and what to do about each."""
