#!/bin/sh
# The toolkits that peers_gpu.py compares with, in one folder for its --site: where nothing can be installed.
#   sh benchmarks/peers/collect.sh DIR [PYTHON-VERSION]
set -eu
here=$(dirname "$0")
folder=${1:?usage: sh benchmarks/peers/collect.sh DIR [PYTHON-VERSION]}
version=${2:-$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')}
collect() { python3 -m pip install --target "$folder" --python-version "$version" --only-binary=:all: --upgrade "$@"; }
collect --no-deps -r "$here/packages.txt"  # with what they ask for, torch would come too
collect pydantic                           # wants one very version of its core, and neither wants torch
# Imported, but not used by these runs.
touch "$folder/spacy.py" "$folder/fasttext.py"
mkdir -p "$folder/ctranslate2"
touch "$folder/ctranslate2/__init__.py"
cat > "$folder/datasets.py" <<'STAND_IN'
class Dataset: ...
class DatasetDict: ...
def load_dataset(*args, **kwargs): raise NotImplementedError
def load_from_disk(*args, **kwargs): raise NotImplementedError
STAND_IN
echo "$folder: $(du -sh "$folder" | cut -f1) for Python $version"
