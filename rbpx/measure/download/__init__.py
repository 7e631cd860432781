"""What a sweep needs of the hub, fetched before it is measured: models, and the samples of datasets."""
