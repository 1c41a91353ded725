#!/bin/sh
# The main job, end to end, on generated data. Usage: sh examples/demo.sh FOLDER
set -eu
out=${1:-demo-output}
rm -rf "$out"
mkdir -p "$out"

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
run() { printf '$ %s\n' "$*" | fold -s -w "${COLUMNS:-100}"; "$@"; }

say "1. A knowledge graph: LUBM, one university, 100,000 triples"
run loginfer kg show lubm --top 3

say "2. Which systems learn which patterns on it, and where do they only take shortcuts?"
run loginfer study lubm --patterns composition,triangle,diamond --systems transe,complex,anyburl,contrast,oracle \
    --out "$out/study"

say "3. Why is a test triple true, and its twin not?"
bench=$out/study/benchmarks/composition
explain() {
    tab=$(printf '\t')
    while IFS="$tab" read -r subject relation object; do
        # Names may be cut down to their last parts.
        run loginfer explain "$bench" "${subject#http://}" "${relation##*#}" "${object#http://}"
    done
}
grep -m 1 GraduateStudent "$bench/test.txt" | explain
grep -m 1 GraduateStudent "$bench/test_neg_nm.txt" | explain

say "Done: open $out/study/report/index.html"
echo "To go on by hand: $out/study/commands.sh"
