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

say "3. A benchmark: do systems learn compositions and triangles?"
run loginfer build "$out/lubm.nt" --pattern composition --pattern triangle --k1 5 --k2 1000 \
    --negatives pa --negatives qg --out "$out/benchmark"

say "4. Is it what it should be, and how far do shortcuts get?"
run loginfer audit "$out/benchmark"

say "5. Where does a test triple come from, and a negative one?"
explain() {
    tab=$(printf '\t')
    while IFS="$tab" read -r subject relation object; do
        run loginfer explain "$out/benchmark" "$subject" "$relation" "$object"
    done
}
head -n 1 "$out/benchmark/test.txt" | explain
head -n 1 "$out/benchmark/test_neg_qg.txt" | explain

say "6. The LUBM benchmark of the paper, with its 107 rules"
run loginfer suite build --only LUBM-all-qg --out "$out/suite"

say "7. What do systems learn: the paper's baseline, two embeddings, a system of one's own, and the oracle?"
evaluate() { run loginfer evaluate "$out/benchmark" --negatives qg "$@"; }
evaluate --system simpbl --out "$out/runs/simpbl"
evaluate --system transe --set epochs=20 --out "$out/runs/transe"
evaluate --system rotate --set epochs=20 --out "$out/runs/rotate"
PYTHONPATH=$(dirname "$0")
export PYTHONPATH
evaluate --ranking given --system own_system:CommonNeighbours --out "$out/runs/own"
evaluate --system oracle --out "$out/runs/oracle"

say "8. Rules: mined from the positives, and from positives and negatives; are the benchmark's among them?"
run loginfer mine "$out/benchmark" --miner exact --out "$out/exact.tsv"
run loginfer rules analyse "$out/benchmark" --rules "$out/exact.tsv" --top 3 --short
evaluate --ranking given --system contrast --out "$out/runs/contrast"

say "9. A report to look at: all systems, curves, rules and shortcuts, every test triple"
run loginfer report "$out" --title "LUBM demo" --out "$out/report"

say "Done: open $out/report/index.html"
