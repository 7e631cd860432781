"""A model of a ladder, GPT-NeoX or Mamba-2, and one step of its training.

Shapes: N positions, D hidden width, V vocabulary.
"""

import time
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from transformers import GPTNeoXConfig, GPTNeoXForCausalLM, Mamba2Config, Mamba2ForCausalLM, PreTrainedModel

_CHUNK = 256  # positions; their float32 logits take 4 MiB at the ladder's vocabulary of 4,096 and stay in cache


def build_model(recipe: Any, shape: Any, seed: int) -> PreTrainedModel:
    """A float32 model of this shape with seeded initial weights and tied embeddings."""
    torch.manual_seed(seed)
    shared: dict[str, Any] = {"vocab_size": recipe.vocab_size, "tie_word_embeddings": True}
    shared |= {"hidden_size": shape.hidden, "num_hidden_layers": shape.layers, "bos_token_id": 0, "eos_token_id": 0}
    if shape.get("architecture") != "mamba2":
        rope = {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": shape.get("rotary", 0.25)}
        neox = GPTNeoXConfig(
            **shared,
            num_attention_heads=shape.heads,
            intermediate_size=4 * shape.hidden,
            max_position_embeddings=recipe.context,
            rope_parameters=rope,
        )
        return GPTNeoXForCausalLM(neox)
    mamba = Mamba2Config(
        **shared,
        num_heads=shape.heads,
        head_dim=2 * shape.hidden // shape.heads,  # the heads share an inner width of two
        state_size=16,
        n_groups=1,
        chunk_size=32,  # how fast the scan is, not what it computes, but for rounding
        pad_token_id=0,
    )
    return Mamba2ForCausalLM(mamba)


class ChunkedLoss(torch.autograd.Function):
    """Mean loss under softmax(hidden @ head.T), differentiable once in both factors, and cross-entropy, in nats.

    With logits z and the target t the loss of a position is ln sum exp z - (1 - s) z_t - s mean(z), where s smooths
    labels (arXiv 1512.00567, section 7). Gradients are computed in the forward pass, so that logits of only one chunk
    of positions exist at a time. With e = exp(logit - max) and Z its sum, the gradient in the logits is
    (e - (1 - s) Z [target]) / Z - s / V. The division by Z, and all that is the same for every token of V, is done on
    the narrow side of each product, so that as few passes as possible go over the logits.
    """

    @staticmethod
    def forward(
        ctx: Any, hidden_ND: Tensor, head_VD: Tensor, targets_N: Tensor, smoothing: float
    ) -> tuple[Tensor, Tensor]:
        """The loss, and cross-entropy, which carries no gradient."""
        grad_ND, grad_VD = torch.empty_like(hidden_ND), torch.zeros_like(head_VD)
        nats, more = hidden_ND.new_zeros(()), hidden_ND.new_zeros(())
        mean_D = head_VD.mean(0)  # its product with a state is the mean logit
        for start in range(0, len(targets_N), _CHUNK):
            chunk = slice(start, start + _CHUNK)
            part_ND, target_N1 = hidden_ND[chunk], targets_N[chunk, None]
            logits_NV = part_ND @ head_VD.T
            max_N1, true_N1 = logits_NV.amax(1, keepdim=True), logits_NV.gather(1, target_N1)
            exp_NV = logits_NV.sub_(max_N1).exp_()
            sum_N1 = exp_NV.sum(1, keepdim=True)
            nats += (sum_N1.log() + max_N1 - true_N1).sum()
            if smoothing:
                more += smoothing * (true_N1.sum() - (part_ND @ mean_D).sum())
            exp_NV.scatter_add_(1, target_N1, -(1 - smoothing) * sum_N1)
            torch.mm(exp_NV, head_VD, out=grad_ND[chunk])
            grad_ND[chunk] /= sum_N1
            grad_VD.addmm_(exp_NV.T, part_ND / sum_N1)
        if smoothing:
            grad_ND -= smoothing * mean_D
            grad_VD -= smoothing / len(head_VD) * hidden_ND.sum(0)
        ctx.save_for_backward(grad_ND, grad_VD)
        ctx.n_positions = len(targets_N)
        cross_entropy = nats / len(targets_N)
        ctx.mark_non_differentiable(cross_entropy)
        return (nats + more) / len(targets_N), cross_entropy

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None, None]:
        """The gradients of the loss in both factors."""
        grad_ND, grad_VD = ctx.saved_tensors
        scale = grads[0] / ctx.n_positions
        return grad_ND * scale, grad_VD * scale, None, None


@dataclass
class Training:
    """A model in training: its weights, its optimizer, its losses and the time it has taken."""

    model: Any
    optimizer: torch.optim.AdamW
    losses: list[float] = field(default_factory=list)
    wall_s: float = 0.0

    @classmethod
    def begin(cls, recipe: Any, size: str, seed: int) -> "Training":
        """Initial weights, and AdamW with weight decay on matrices only; its rate is set before each step."""
        model = build_model(recipe, recipe.shapes[size], seed).to(device_of(recipe)).train()
        groups = [
            {"params": [p for p in model.parameters() if p.ndim > 1], "weight_decay": recipe.weight_decay},
            {"params": [p for p in model.parameters() if p.ndim <= 1], "weight_decay": 0.0},
        ]
        return cls(model, torch.optim.AdamW(groups, betas=(0.9, 0.95), fused=True))

    @property
    def step(self) -> int:
        """Steps done."""
        return len(self.losses)

    def state(self) -> dict[str, Any]:
        """All that is needed to continue."""
        parts = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}
        return {**parts, "losses": self.losses, "wall_s": self.wall_s}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from such a state."""
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.losses, self.wall_s = list(state["losses"]), state["wall_s"]

    def advance(self, ids_BT: Tensor, rate: float, smoothing: float) -> None:
        """One step of the optimizer; keeps the cross-entropy before it, in nats."""
        started = time.monotonic()
        ids_BT = ids_BT.to(self.model.device)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        with torch.autocast(ids_BT.device.type, torch.bfloat16):
            hidden_BTD = self.model.base_model(ids_BT[:, :-1], use_cache=False)[0]
        head_VD = self.model.get_output_embeddings().weight
        loss, nats = ChunkedLoss.apply(hidden_BTD.float().flatten(0, 1), head_VD, ids_BT[:, 1:].flatten(), smoothing)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.losses.append(nats.item())
        self.wall_s += time.monotonic() - started


def device_of(recipe: Any) -> str:
    """Where a recipe is trained."""
    return str(recipe.device or ("cuda" if torch.cuda.is_available() else "cpu"))
