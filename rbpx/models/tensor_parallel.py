"""Tensor parallelism: splits a model's layers and vocabulary over several processes, each with its own device.

All its uses of transformers and torch's device mesh are here, because both interfaces still change.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh

from rbpx.errors import RbpxError
from rbpx.models.architecture import auto_class, layers_of
from rbpx.ranks.split_vocabulary import VocabularyPart

T = TypeVar("T")

_MESH = ("pp", "dp_replicate", "fsdp", "tp")  # the names that transformers looks for
# transformers has no plan for OPT, whose attention counts heads by itself.
_OPT_COLUMNS = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "fc1")
_OPT_STYLES = dict.fromkeys(_OPT_COLUMNS, "colwise") | {"self_attn.out_proj": "rowwise", "fc2": "rowwise"}
_OPT_PLAN = {f"model.decoder.layers.*.{name}": style for name, style in _OPT_STYLES.items()}
_HEADS = ("num_attention_heads", "num_key_value_heads")


@dataclass(frozen=True, eq=False)
class TensorGroup:
    """The processes that share one model, along the axis `tp` of the mesh of all, seen from one of them."""

    mesh: Any
    device: torch.device

    @property
    def size(self) -> int:
        """Number of processes in the group."""
        return int(self.mesh["tp"].size())

    @property
    def rank(self) -> int:
        """The rank of this process in the group."""
        return int(self.mesh["tp"].get_local_rank())

    def gather(self, part: T) -> list[T]:
        """The parts of all processes of the group in rank order, on each of them."""
        parts: list[Any] = [None] * self.size
        torch.distributed.all_gather_object(parts, part, group=self._group)
        return parts

    def together(self, work: Callable[[], T]) -> T:
        """What `work`, which waits for no other, returns here; an error in one process is raised in all."""
        problem: Exception | None = None
        try:
            result = work()
        except Exception as raised:
            problem = raised
        problems = [reported for reported in self.gather(problem) if reported is not None]
        if problems:
            raise problems[0]
        return result

    def sum_over(self, values: Tensor) -> Tensor:
        """The sum over the group, on each of its processes."""
        return self._reduced(values, torch.distributed.ReduceOp.SUM)

    def max_over(self, values: Tensor) -> Tensor:
        """The elementwise maximum over the group, on each of its processes."""
        return self._reduced(values, torch.distributed.ReduceOp.MAX)

    @property
    def _group(self) -> Any:
        return self.mesh["tp"].get_group()

    def _reduced(self, values: Tensor, how: Any) -> Tensor:
        values = values.clone(memory_format=torch.contiguous_format)  # it is reduced in place
        torch.distributed.all_reduce(values, how, group=self._group)
        return values


def tensor_group(size: int, device: torch.device) -> TensorGroup:
    """Split the processes of the launch into groups of `size` neighbours, one model each; RbpxError for a remainder."""
    n_processes = torch.distributed.get_world_size()
    if n_processes % size:
        raise RbpxError(
            f"parallel.tensor={size} does not divide the {n_processes} processes of this launch; launch a multiple"
        )
    shape = (1, n_processes // size, 1, size)
    return TensorGroup(init_device_mesh(device.type, shape, mesh_dim_names=_MESH), device)


def load_split(folder: Path, config: Any, group: TensorGroup, **options: Any) -> tuple[Any, Any]:
    """This process's part of the model of a folder, and the loading report of transformers about its weights.

    Raises:
        RbpxError: there is no plan for its architecture, or its heads cannot be divided.
    """
    from transformers.distributed import DistributedConfig
    from transformers.distributed.utils import TransformersDeviceMesh

    plain: Any = auto_class(config)._model_mapping[type(config)]
    text = config.get_text_config(decoder=True)
    _check_heads(text, group.size)
    plan = dict(_OPT_PLAN) if config.model_type == "opt" else {}
    has_plan = plan or plain._tp_plan or getattr(text, "base_model_tp_plan", None)
    if not has_plan:
        raise RbpxError(
            f"transformers has no plan to split {config.model_type} over processes; drop parallel=, or use device=split"
        )

    def on_our_mesh(cls: Any, asked: Any, device_map: Any = None) -> tuple[Any, Any, Any]:
        return asked, group.device, TransformersDeviceMesh(group.mesh, group.mesh)

    # transformers makes a mesh of all processes, but several groups need ours. The subclass keeps the class name, by
    # which transformers finds how the names of weights changed.
    ours: Any = type(
        plain.__name__,
        (plain,),
        {"prepare_distribute_model": classmethod(on_our_mesh), "__module__": plain.__module__},
    )
    model, report = ours.from_pretrained(
        folder, distributed_config=DistributedConfig(tp_size=group.size, tp_plan=plan or None), **options
    )
    if config.model_type == "opt":
        for module in model.modules():
            if hasattr(module, "num_heads"):
                module.num_heads //= group.size
    return model, report


def _check_heads(config: Any, size: int) -> None:
    for name, layer in product(_HEADS, layers_of(config)):
        heads = getattr(layer, name, None)
        if heads is not None and heads % size:
            raise RbpxError(
                f"{name}={heads} of {config.model_type} cannot be divided among {size} processes; "
                f"use parallel.tensor={next(n for n in range(size, 0, -1) if heads % n == 0)}"
            )


def part_of_head(head: nn.Module, group: TensorGroup, vocab_size: int) -> tuple[nn.Linear, VocabularyPart]:
    """The rows of an output head whose logits this process computes, as a layer, and the part of the whole they are.

    Rows from `vocab_size` on are padding that the model cuts off.

    Raises:
        RbpxError: the head is not a plain matrix product.
    """
    from torch.distributed.tensor import DTensor

    if type(head) is not nn.Linear:
        raise RbpxError(f"its head, a {type(head).__name__}, cannot be split over processes; drop parallel=")
    weight_vD: Tensor = head.weight.detach()
    bias: Tensor | None = getattr(head, "bias", None)
    bias_v = None if bias is None else bias.detach()
    if isinstance(weight_vD, DTensor):
        weight_vD = weight_vD.to_local()
        bias_v = bias_v.to_local() if isinstance(bias_v, DTensor) else bias_v
    else:
        rows = -(-len(weight_vD) // group.size)
        mine = slice(group.rank * rows, (group.rank + 1) * rows)
        weight_vD, bias_v = weight_vD[mine], None if bias_v is None else bias_v[mine]
    heights = group.gather(len(weight_vD))
    whole = VocabularyPart(sum(heights[: group.rank]), len(weight_vD), max(heights), group.sum_over, group.max_over)
    part = nn.Linear(weight_vD.shape[1], len(weight_vD), bias=bias_v is not None, device="meta")
    state = {"weight": weight_vD} | ({} if bias_v is None else {"bias": bias_v})
    part.load_state_dict(state, assign=True)
    part.requires_grad_(False)
    return part, whole.below(vocab_size)
