"""Print the shell completion script of `rbpx`.

Prints a script for bash or zsh that completes verbs, keys, names of models, texts and studies, and flags of the console
script `rbpx`; `python -m rbpx` cannot be completed.

Put eval "$(rbpx completion bash)" into ~/.bashrc, or eval "$(rbpx completion zsh)" into ~/.zshrc. With --config-dir
FOLDER it offers the names in that folder too.
"""

import re
import shlex
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

from rbpx.cli.argv import flags
from rbpx.cli.registry import Command, Verb, verbs
from rbpx.config.folders import GROUPS, options
from rbpx.config.keys.key import Keys
from rbpx.config.model.family import ModelConfig
from rbpx.config.request import KEYS
from rbpx.config.text.dataset import DatasetConfig, ProtocolConfig
from rbpx.errors import RbpxError
from rbpx.files.escapes import out

SHELLS: Final = ("bash", "zsh")
_GROUPS: Final[dict[str, Any]] = {"model": ModelConfig, "dataset": DatasetConfig, "protocol": ProtocolConfig}
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


def script(shell: str, own: Sequence[Path] = ()) -> str:
    """The script that a shell evaluates to complete `rbpx`, with names from the user's folders `own`."""
    if shell not in SHELLS:
        raise RbpxError(f"completion for {shell} is not there; known: {', '.join(SHELLS)}, as in rbpx completion bash")
    cases = [f"    {key}) known=({shlex.join(values)}) ;;" for key, values in _values(own).items()]
    cases.append(f"    {'|'.join(_FILES)}) ;;")
    inner = [f"{group}.{field}=" for group, kind in _GROUPS.items() for field in (each.name for each in fields(kind))]
    keys = [f"{name}=" for name, key in KEYS.items() if key.help]
    words = shlex.join((*verbs(), *keys, *inner, *flags()))
    made = _SCRIPT.replace("@cases@", "\n".join(cases)).replace("@words@", words)
    return made if shell == "bash" else f"autoload -U +X bashcompinit && bashcompinit\n{made}"


def _values(own: Sequence[Path]) -> dict[str, Sequence[str]]:
    values: dict[str, Sequence[str]] = {name: key.values for name, key in KEYS.items() if key.values}
    values["--format"] = values["format"]
    for group in GROUPS:
        # without those that a shell might read as more than a word
        values[group] = [name for name in options(group, own) if re.fullmatch(r"[\w.-]+", name)]
    return values


VERB = Verb(
    order=380,
    theme="store",
    examples=("python -m rbpx completion bash",),
    takes_words=True,
    keys=Keys,
)


def perform(asked: Command) -> None:
    """Prints the script."""
    if len(asked.line.words) != 1:
        raise RbpxError(f"completion takes one shell, got {len(asked.line.words)}: rbpx completion bash")
    print(script(asked.line.words[0], [] if asked.line.own is None else [asked.line.own]), file=out())
