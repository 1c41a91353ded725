#!/bin/sh
# What a newcomer does: from a fresh clone to a report on an own score file over an own graph, with the README and
# the documentation alone.
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

say "2. A graph of 1,000 triples, as a file with tabs"
awk '
    # The random numbers of Park and Miller: every awk has the same.
    function draw(n) { x = (x * 16807) % 2147483647; return int(x / 2147483647 * n) }
    BEGIN {
        x = 3
        split("likes knows helps calls visits", names, " ")
        while (n < 1000) {
            a = draw(90); b = draw(90); first = draw(3) + 1
            for (i = first; i <= first + draw(2); i++) {
                line = "p" a "\t" names[i + (draw(5) == 0)] "\tp" b
                if (!(line in seen) && n < 1000) { seen[line]; n++; print line }
            }
        }
    }' > mine.tsv
[ "$(wc -l < mine.tsv)" -eq 1000 ] || fail "the graph does not have 1,000 triples"
run "kg show" mine.tsv

say "3. A benchmark, and whether it is any good"
run build mine.tsv --pattern intersection --pattern composition --k1 3 --k2 200 --negatives qg --out bench/mine
run audit bench/mine

say "4. Which triples want a score?"
run evaluate bench/mine --export-queries queries.tsv

say "5. A model of one's own: a pair that has a relation already is likely to have another one"
awk -F '\t' -v OFS='\t' '
    NR == FNR { pair[$1, $3]++; next }
    { print $0, pair[$1, $3] + 0 }' bench/mine/train.txt queries.tsv > scores.tsv

say "6. How good is it?"
run evaluate bench/mine --scores scores.tsv --name my-model --out runs/mine

say "7. A report"
run report runs bench --out site

[ -s site/index.html ] || fail "there is no site/index.html"
grep -q 'my-model' site/index.html || fail "the report does not name my-model"
say "Done: a newcomer gets from a clone to a report"
