"""S of every multimodal architecture of the installed transformers is that of its text model."""

import pytest

from tests.support.multimodal import check_size, wrappers

# Those whose tiny form does not build: one value of a part has to fit another, or a package of images is missing.
NOT_BUILT = {
    *(
        "cohere_compass",
        "cosmos3_edge",
        "deepseek_ocr2",
        "dots3_note",
        "emu3",
        "ernie4_5_vl_moe",
        "exaone4_5",
        "fast_vlm",
    ),
    *("fun_asr_nano", "gemma3n", "glm5_next", "granite4_vision", "granite_docling", "inkling2", "muse_spark"),
    *("perception_lm", "qwen4_exp"),
}
NO_TEXT_PART = {"blip", "nemotron_h_omni", "pp_formulanet"}  # they have no output head or no embedding of text


@pytest.mark.parametrize("model_type", sorted(set(wrappers()) - NOT_BUILT - NO_TEXT_PART))
def test_the_size_of_every_multimodal_model_is_that_of_its_text(model_type: str) -> None:
    check_size(model_type)
