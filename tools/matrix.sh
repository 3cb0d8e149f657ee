#!/usr/bin/env bash
# The wheel in a clean environment of every Python on this machine, with the newest and the earliest frameworks: the
# starts of the documentation are followed outside the checkout. A table.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset PYTHONPATH
build() { "$root/$PYTHON" -m build --no-isolation --outdir "$@" >>"$work/build.log"; }
build "$work" --sdist .
mkdir "$work/source" && tar -xzf "$work"/*.tar.gz -C "$work/source" --strip-components 1
build "$work" --wheel .
build "$work/again" --wheel "$work/source"
cmp "$work"/*.whl "$work"/again/*.whl && echo "the sdist builds the same wheel"
earliest=$("$PYTHON" tools/lowest.py | tr ' ' '\n' | grep -E '^(llama-index-core|langchain-core)=')
status=0 seen=" "
printf '| Python | frameworks | llama-index-core | langchain-core | starts | seconds |\n|---|---|---|---|---|---|\n'
for python in "$HOME"/.pyenv/versions/3.1?.*/bin/python /usr/bin/python3.1? "$(command -v python3)"; do
    version=$("$python" -c 'import sys; assert sys.version_info >= (3, 10); print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || continue
    [[ $seen == *" $version "* ]] && continue
    seen+="$version "
    for releases in newest earliest; do
        started=$SECONDS
        rm -rf "$work/env"
        followed=yes
        { "$python" -m venv "$work/env" &&
            "$work/env/bin/python" tools/install.py "$(echo "$work"/*.whl)[llama-index,langchain,files]" \
                $([[ $releases == earliest ]] && echo "$earliest") &&
            (cd "$work" && env/bin/python "$root/tools/starts.py"); } >"$work/starts.log" 2>&1 || followed=FAILED status=1
        versions=$("$work/env/bin/python" -c 'from importlib.metadata import version as of
print(of("llama-index-core"), "|", of("langchain-core"))' 2>/dev/null || echo "|")
        echo "| $version | $releases | $versions | $followed | $((SECONDS - started)) |"
        [[ $followed == yes ]] || tail -n 3 "$work/starts.log"
    done
done
exit $status
