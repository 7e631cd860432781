"""Downloads the models and dataset samples of a sweep before it is measured."""
