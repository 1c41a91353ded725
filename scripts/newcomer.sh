#!/bin/sh
# What newcomers do, with the README and the documentation alone, at 80 columns: an engineer with a messy graph of a company, a
# researcher with a model, a reviewer with folders of benchmarks.
#
#   sh scripts/newcomer.sh [CLONE]       a folder with a clone; without it, this repository is cloned
#   LOGINFER=.venv/bin/loginfer sh scripts/newcomer.sh .      an environment that is there: nothing is installed
#   WORK=folder …                        where to work; by default a folder that is removed in the end
#
# Every command and option it uses must be named in README.md or docs/ of the clone; it checks that itself.
set -eu

say() { printf '\n== %s\n' "$*"; }
fail() { printf 'newcomer: %s\n' "$*" >&2; exit 1; }

if [ -n "${WORK:-}" ]; then
    mkdir -p "$WORK"
else
    WORK=$(mktemp -d)
    trap 'rm -rf "$WORK"' EXIT
fi
work=$(cd "$WORK" && pwd)

if [ $# -gt 0 ]; then
    clone=$(cd "$1" && pwd)
else
    clone=$work/clone
    git clone --quiet "$(dirname "$0")/.." "$clone"
fi
manual=$work/manual.txt
# All pages one after the other, each command in one line.
{
    cat "$clone/README.md"
    find "$clone/docs" -name '*.md' -exec cat {} +
} | awk '{ line = line $0 } sub(/\\$/, "", line) { next } { print line; line = "" }' > "$manual"

# named COMMAND WORDS…: does the manual show this command, and each of its options with it?
named() {
    command=$1
    grep -q -e "loginfer $command" "$manual" || fail "the documentation does not name: loginfer $command"
    shift
    for word in "$@"; do
        case $word in
            --*) grep -q -e "loginfer $command .*$word" "$manual" ||
                fail "the documentation does not name the option $word of: loginfer $command" ;;
        esac
    done
}

run() {
    named "$@"
    printf '$ loginfer %s\n' "$*"
    # A command of two words (`kg show`) is one argument here.
    words=$1
    shift
    # shellcheck disable=SC2086
    "$program" $words "$@"
}

say "1. Set it up"
if [ -n "${LOGINFER:-}" ]; then
    case $LOGINFER in
        */*) program=$(cd "$(dirname "$LOGINFER")" && pwd)/$(basename "$LOGINFER") ;;
        *) program=$LOGINFER ;;
    esac
else
    grep -q '^make demo' "$manual" || fail "the documentation does not name: make demo"
    (cd "$clone" && make demo)
    program=$clone/.venv/bin/loginfer
fi
cd "$work"

export COLUMNS=80
# The example of the guide; `people` makes it smaller.
people=${PEOPLE:-600}

say "2. An engineer: a graph as companies have them, with labels, literals, types and a bad line"
python3 "$clone/examples/company.py" company.nt --people "$people"
run "kg show" company.nt --on-error skip --top 4
run study company.nt --on-error skip --patterns inversion --systems anyburl,contrast --out study
[ -s study/report/index.html ] || fail "there is no study/report/index.html"
grep -q 'contrast' study/report/index.html || fail "the report does not name contrast"
grep -q '^loginfer build' study/commands.sh || fail "the study does not say what it did"

say "3. The same as a table with a header and a fourth column"
python3 "$clone/examples/company.py" company.csv --people "$people"
run build company.csv --columns sro_ --pattern composition --k1 3 --k2 200 --negatives qg --out bench/mine

say "4. A researcher: which triples want a score?"
run evaluate bench/mine --export-queries queries.tsv

say "5. A model of one's own: a pair that has a relation already is likely to have another one"
awk -F '\t' -v OFS='\t' '
    NR == FNR { pair[$1, $3]++; next }
    { print $0, pair[$1, $3] + 0 }' bench/mine/train.txt queries.tsv > scores.tsv
run evaluate bench/mine --scores scores.tsv --name my-model --out runs/mine
cp "$clone/examples/own_system.py" .
run evaluate bench/mine --system own_system:CommonNeighbours,oracle --jobs 2 --out runs

say "6. A reviewer: are these benchmarks any good, and who does well on them?"
run audit bench/mine study/benchmarks/inversion
run report runs bench --out site
[ -s site/index.html ] || fail "there is no site/index.html"
grep -q 'my-model' site/index.html || fail "the report does not name my-model"

say "7. LUBM, which needs no file"
run "kg show" lubm --top 3
run "rules rank" lubm --pattern composition --top 3

say "Done: newcomers get from a clone to their answers"
