"""``python -m tests.node``: build the programs of a node, bring nodes up and down, look at them.

python -m tests.node build [--release 1.36]
python -m tests.node packages                        # Debian packages that this host lacks
python -m tests.node up --dir DIR [--gate NAME=true] [--runtime-config GROUP/VERSION=true]
python -m tests.node up --dir DIR2 --join DIR        # one more node of the cluster in DIR
python -m tests.node restart kubelet --dir DIR       # or etcd, kube-apiserver, containerd …
python -m tests.node stop|start|kill kubelet --dir DIR
python -m tests.node exec --dir DIR -- COMMAND …     # as the node sees its folders
python -m tests.node env --dir DIR                   # lines for a shell
python -m tests.node down --dir DIR [--remove]
"""

import argparse
import os
import signal
import sys
from pathlib import Path

from tests.node.cluster import Cluster
from tests.node.lifecycle import bring_up, enter_own_namespace, prepare_folder, take_down
from tests.node.processes import MARK, NodeError
from tests.node.programs import (
    RELEASE,
    build_programs,
    missing_packages,
    programs_folder,
    require_host,
)


def _tell(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def _progress(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def _up(words: argparse.Namespace) -> None:
    root: Path = words.dir.absolute()
    join: Path | None = words.join.absolute() if words.join else None
    programs = words.programs.absolute() if words.programs else programs_folder(words.release)
    if os.environ.get(MARK) != str(root):
        require_host()
        prepare_folder(root, programs)
        enter_own_namespace(root, [sys.executable, "-m", "tests.node", *sys.argv[1:]])
    note = bring_up(
        root, programs, join=join, gates=words.gate, runtime_config=words.runtime_config
    )
    environment = f"eval $(python -m tests.node env --dir {root})"
    _tell(f"node {note.name} is Ready; for kubectl: {environment}")


def _down(words: argparse.Namespace) -> None:
    root: Path = words.dir.absolute()
    if words.remove and (root / "node.json").exists():
        Cluster(root).down(remove=True)
    else:
        take_down(root)


def _program(words: argparse.Namespace) -> None:
    cluster = Cluster(words.dir.absolute())
    for name in words.names:
        if words.verb in {"stop", "kill"}:
            number = signal.SIGTERM if words.verb == "stop" else signal.SIGKILL
            cluster.processes.stop(name, number)
        else:
            cluster.restart(name)


def _exec(words: argparse.Namespace) -> None:
    processes = Cluster(words.dir.absolute()).processes
    command = [*processes.entrance(), *words.command]
    os.execvpe(command[0], command, processes.environment())


def _env(words: argparse.Namespace) -> None:
    cluster = Cluster(words.dir.absolute())
    _tell(f"export KUBECONFIG={cluster.kubeconfig} PATH={cluster.programs}:$PATH")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.node",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    build, packages, up = (verbs.add_parser(verb) for verb in ("build", "packages", "up"))
    build.set_defaults(act=lambda words: _tell(str(build_programs(_progress, words.release))))
    packages.set_defaults(act=lambda _: _tell(" ".join(missing_packages())))
    up.set_defaults(act=_up)
    for verb in (build, up):
        verb.add_argument("--release", default=RELEASE)
    up.add_argument("--programs", type=Path, help="folder; default: what `build` makes")
    up.add_argument("--join", type=Path)
    up.add_argument("--gate", action="append", default=[])
    up.add_argument("--runtime-config", action="append", default=[])
    acts = {"down": _down, "env": _env, "exec": _exec}
    acts |= dict.fromkeys(("start", "stop", "kill", "restart"), _program)
    for name, act in acts.items():
        verbs.add_parser(name).set_defaults(act=act)
    for name in ("up", *acts):
        verbs.choices[name].add_argument("--dir", type=Path, required=True)
    for name in ("start", "stop", "kill", "restart"):
        verbs.choices[name].add_argument("names", nargs="+")
    verbs.choices["down"].add_argument("--remove", action="store_true")
    verbs.choices["exec"].add_argument("command", nargs="+")
    return parser


def main() -> None:
    words = _parser().parse_args()
    try:
        words.act(words)
    except NodeError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
