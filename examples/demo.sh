#!/bin/sh
# The main job, end to end, on generated data. Usage: sh examples/demo.sh FOLDER
set -eu
out=${1:-demo-output}
rm -rf "$out"
mkdir -p "$out"

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
run() { printf '$ %s\n' "$*"; "$@"; }

say "1. A knowledge graph: LUBM(1,0), one university"
run loginfer kg generate lubm --out "$out/lubm.nt"
run loginfer kg show "$out/lubm.nt" --top 5

say "2. Which compositions have the largest support?"
run loginfer rules rank "$out/lubm.nt" --pattern composition --top 5

say "3. What do the 107 LUBM rules derive, in one step and to the end?"
run loginfer rules apply "$out/lubm.nt" lubm-107 --out "$out/one-step.tsv"
run loginfer rules apply "$out/lubm.nt" lubm-107 --closure --out "$out/closure.tsv"

say "4. Why does a derived triple follow?"
run loginfer rules explain "$out/lubm.nt" lubm-107 --closure \
    http://www.Department0.University0.edu/FullProfessor0 type Person

say "Done: see $out/"
