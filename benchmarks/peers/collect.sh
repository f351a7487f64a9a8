#!/bin/sh
# The toolkits that peers_gpu.py compares with, in one folder for its --site: for a machine where nothing can be installed.
#   sh benchmarks/peers/collect.sh DIR [PYTHON-VERSION]
set -eu
here=$(dirname "$0")
folder=${1:?usage: sh benchmarks/peers/collect.sh DIR [PYTHON-VERSION]}
version=${2:-$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')}
# pydantic wants one version of pydantic-core, and --no-deps keeps torch from being replaced: so it is asked first.
core=$(python3 -m pip install --dry-run --quiet --report - --target "$folder" --python-version "$version" \
    --only-binary=:all: pydantic | python3 -c 'import json, sys
print(next("pydantic-core==" + i["metadata"]["version"] for i in json.load(sys.stdin)["install"] if i["metadata"]["name"] == "pydantic_core"))')
python3 -m pip install --target "$folder" --python-version "$version" --only-binary=:all: --no-deps \
    -r "$here/packages.txt" "$core"
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
