"""``torch.hub``: models of folders on this machine, and weights that are in the cache. Nothing is downloaded."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlparse

from tensorcore.errors import LoadError, UsageError
from tensorcore.serialization import load as load_file

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
_places: dict[str, str] = {}


def __getattr__(name: str) -> Any:
    """``tqdm``, the progress bar that libraries borrow from here: imported when asked for, as it is no dependency."""
    if name == "tqdm":
        from tqdm.auto import tqdm

        return tqdm
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def get_dir() -> str:
    """The cache: what ``set_dir`` named, else ``$TORCH_HOME/hub``, else ``~/.cache/torch/hub``, as PyTorch has it."""
    return _places["hub"] if "hub" in _places else os.path.join(_get_torch_home(), "hub")


def _get_torch_home() -> str:
    """The folder above it, by PyTorch's name: libraries keep caches of their own there."""
    cache = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    return os.path.expanduser(os.environ.get("TORCH_HOME", os.path.join(cache, "torch")))


def set_dir(d: str | os.PathLike[str]) -> None:
    """Use that folder as the cache."""
    _places["hub"] = os.path.expanduser(d)


def load(repo_or_dir: str, model: str, *args: Any, source: str = "github", trust_repo: Any = None, force_reload: bool = False,
         verbose: bool = True, skip_validation: bool = False, **kwargs: Any) -> Any:  # fmt: skip
    """What the function ``model`` in a folder's ``hubconf.py`` makes.

    Args:
        repo_or_dir: the folder, with ``source="local"``. Any other source is refused, as it would be downloaded.
        args, kwargs: what the function is given.
    """
    return _entry(_conf("load", repo_or_dir, source), model)(*args, **kwargs)


def list(github: str, force_reload: bool = False, skip_validation: bool = False, trust_repo: Any = None,
         verbose: bool = True, source: str = "github") -> Any:  # fmt: skip
    """The names of the functions that a folder's ``hubconf.py`` offers."""
    conf = _conf("list", github, source)
    return [name for name in dir(conf) if callable(getattr(conf, name)) and not name.startswith("_")]


def help(github: str, model: str, force_reload: bool = False, skip_validation: bool = False, trust_repo: Any = None,
         source: str = "github") -> str | None:  # fmt: skip
    """The docstring of one of those functions."""
    found: str | None = _entry(_conf("help", github, source), model).__doc__
    return found


def load_state_dict_from_url(url: str, model_dir: str | None = None, map_location: Any = None, progress: bool = True,
                             check_hash: bool = False, file_name: str | None = None,
                             weights_only: bool = True) -> Any:  # fmt: skip
    """The weights that lie in the cache under the name at the end of ``url``; where they do not, LoadError says so.

    Args:
        model_dir: the folder; ``checkpoints`` in ``get_dir()`` where None.
        check_hash: compare the file's SHA-256 with the start of it that is part of its name.
        file_name: its name, where that is another.
    """
    folder = Path(get_dir(), "checkpoints") if model_dir is None else Path(model_dir)
    path = folder / (file_name or Path(urlparse(url).path).name)
    if not path.exists():
        raise LoadError(
            f"load_state_dict_from_url: expected the weights at {path}, got no file there, and nothing is downloaded; "
            f"fetch {url} to that place"
        )
    if check_hash and (found := HASH_REGEX.search(path.name)) is not None:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        if not digest.startswith(found[1]):
            raise LoadError(
                f"load_state_dict_from_url: invalid hash value (expected {found[1]}), got {digest} of {path}; fetch it again"
            )
    return load_file(path, map_location=map_location, weights_only=weights_only)


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None, progress: bool = True) -> None:
    """Refused: nothing is downloaded."""
    raise UsageError(f"download_url_to_file: expected a file of this machine, got {url}; fetch it to {dst} yourself")


def _conf(op: str, folder: str, source: str) -> ModuleType:
    if source != "local":
        raise UsageError(
            f"{op}: expected source='local', got source={source!r} for {folder!r}, which would be downloaded; fetch the "
            "repository yourself and name its folder"
        )
    path = Path(folder, "hubconf.py")
    if not path.exists():
        raise LoadError(f"{op}: expected a file {path}, got none; name a folder that has one")
    spec = importlib.util.spec_from_file_location("hubconf", path)
    conf = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
    sys.path.insert(0, str(folder))
    try:
        spec.loader.exec_module(conf)  # type: ignore[union-attr]
    finally:
        sys.path.remove(str(folder))
    missing = [name for name in getattr(conf, "dependencies", ()) if importlib.util.find_spec(name) is None]
    if missing:
        raise UsageError(
            f"{op}: Missing dependencies: {', '.join(missing)}, got a folder that needs them; install them"
        )
    return conf


def _entry(conf: ModuleType, model: str) -> Any:
    found = getattr(conf, model, None)
    if not callable(found):
        raise UsageError(f"load: Cannot find callable {model} in hubconf, got {conf.__file__}; see list(...)")
    return found
