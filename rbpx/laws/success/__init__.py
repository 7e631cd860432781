"""Task success against a feature: values of a feature and shares of success in, a sigmoid and predictions out."""
