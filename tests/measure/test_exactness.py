"""Products in float32 are float32's on a GPU, whatever the environment asks for, and batches there are larger."""

import torch

from rbpx.config.keys.runs import GridKeys
from rbpx.measure.distributed import init_process_group


def test_no_product_and_no_convolution_is_in_tf32() -> None:
    matmul, convolutions = torch.backends.cuda.matmul, torch.backends.cudnn
    matmul.allow_tf32 = convolutions.allow_tf32 = True  # as a variable of the environment, or another library, may
    init_process_group("cpu", 1)
    assert [matmul.allow_tf32, convolutions.allow_tf32] == [False, False]
    assert [matmul.allow_bf16_reduced_precision_reduction, matmul.allow_fp16_reduced_precision_reduction] == [False] * 2


def test_a_batch_has_more_tokens_on_a_gpu_unless_they_are_given() -> None:
    assert [GridKeys().tokens_in_batch(device) for device in ("cpu", "cuda")] == [4096, 32_768]
    assert GridKeys(tokens_per_batch=100).tokens_in_batch("cuda") == 100
    assert GridKeys(deterministic=True).tokens_in_batch("cuda") == 1
