"""Completion of the console script: the verbs, keys and names that there are in, a script for a shell out.

The names are written into the script, so a press of Tab starts no Python; made again, it knows new ones. Whoever wrote
a file chose its name: words of the script are quoted, and bash compares them without expanding them.
"""

import re
import shlex
from collections.abc import Iterable, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, Final

from rbpx.cli.argv import FLAGS
from rbpx.cli.registry import verbs
from rbpx.config.options import Checkpoints, Device, Dtype, Format
from rbpx.config.places import experiments, folder
from rbpx.config.request import Request
from rbpx.errors import RbpxError
from rbpx.laws.names import IMPORTED, LAWS, Axis, Method
from rbpx.laws.surface.names import FORM_NAMES, Objective
from rbpx.ties import Ties

SHELLS: Final = ("bash", "zsh")
_INNER: Final = (
    "model.id",
    "model.family",
    "model.revision",
    "model.bos",
    "dataset.path",
    "dataset.name",
    "dataset.fields",
)
_FILES: Final = ("store", "output", "dataset.path", "model.id", "--store", "--output", "--config-dir")

_SCRIPT: Final = r"""# completion of rbpx; in bash: eval "$(rbpx completion bash)"
_rbpx() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} key= lead= word= known
  known=() COMPREPLY=()
  if [[ $cur == "=" ]]; then key=$prev cur=                                # bash makes three words of key=value
  elif [[ $prev == "=" ]]; then key=${COMP_WORDS[COMP_CWORD-2]}
  elif [[ $cur == *=* ]]; then key=${cur%%=*} lead="${cur%%=*}=" cur=${cur#*=}  # other shells make one
  elif [[ $prev == --* ]]; then key=$prev
  fi
  case $key in
@cases@
    *) key= known=(@words@) ;;
  esac
  if [[ -n $key && ${#known[@]} -eq 0 ]]; then
    local form=%q                              # what a shell would act on is escaped, by bash itself from version 4 on
    type compopt >/dev/null 2>&1 && form=%s && compopt -o filenames 2>/dev/null
    while IFS= read -r word; do
      printf -v word "$form" "$word"
      [[ $form == %q && $word == '\~'* ]] && word=${word#\\}  # the home folder
      COMPREPLY+=("$lead$word")
    done < <(compgen -f -- "$cur")
  else
    for word in "${known[@]}"; do [[ $word == "$cur"* ]] && COMPREPLY+=("$lead$word"); done
  fi
  [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
  return 0
}
complete -F _rbpx rbpx"""


def script(shell: str) -> str:
    """What a shell evaluates to complete `rbpx`.

    Raises:
        RbpxError: no such shell is known.
    """
    if shell not in SHELLS:
        raise RbpxError(f"completion for {shell} is not there; known: {', '.join(SHELLS)}, as in rbpx completion bash")
    cases = [f"    {key}) known=({shlex.join(values)}) ;;" for key, values in _values().items()]
    cases.append(f"    {'|'.join(_FILES)}) ;;")
    keys = [f"{name}=" for name in (*Request.__dataclass_fields__, *_INNER) if name not in ("study", "imports")]
    words = shlex.join((*verbs(), *keys, "experiment=", *FLAGS))
    made = _SCRIPT.replace("@cases@", "\n".join(cases)).replace("@words@", words)
    return made if shell == "bash" else f"autoload -U +X bashcompinit && bashcompinit\n{made}"


def _values() -> dict[str, Sequence[str]]:
    """The values of each key whose values are names."""
    enums: dict[str, Any] = {"dtype": Dtype, "device": Device, "format|--format": Format, "ties": Ties}
    enums |= {"objective": Objective, "checkpoints": Checkpoints, "axis": Axis}
    values: dict[str, Sequence[str]] = {name: _named(kind) for name, kind in enums.items()}
    for group in ("model", "dataset", "protocol", "parallel"):
        values[group] = _stems((folder("conf") / group).glob("*.yaml"))
    values["experiment"] = _stems(experiments("measure"))
    return values | {
        "laws": ["all", *LAWS, *IMPORTED],
        "method": ["all", *Method],
        "form": ["all", *FORM_NAMES],
        "size": ["all"],
        "plot|calibrate": ["true"],
    }


def _named(kind: type[Enum]) -> list[str]:
    return [str(each.value) for each in kind]


def _stems(files: Iterable[Path]) -> list[str]:
    """The names of files, without those that a shell might read as more than a word."""
    return sorted(path.stem for path in files if re.fullmatch(r"[\w.-]+", path.stem))
