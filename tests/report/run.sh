#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# locus lab report on comparisons with planted outcomes: verdicts, numbers, and the page in a
# browser. Screenshots are left in $BUILD/tests/report.
. "$(dirname "$0")/../support/check.sh"
here=$ROOT/tests/report
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE

if ! command -v python3 >/dev/null 2>&1; then
    begin report/all
    skip "python3 is not installed"
    finish report
fi

tab=$(printf '\t')
cases() { # FILE: lines of read.py and look.py, each a case
    while IFS=$tab read -r name trouble; do
        begin "report/$name"
        check "$trouble" test -z "$trouble"
    done <"$1"
}

report() { "$LOCUS" lab report "$1" >"$SCRATCH/said" 2>"$SCRATCH/complaint"; }
for outcome in reproduced contradicted open partial; do
    begin "report/$outcome"
    folder=$SCRATCH/$outcome
    check "make_runs.py" python3 "$here/make_runs.py" "$outcome" "$folder"
    check "locus lab report" report "$folder"
    check "says where the page is" grep -qF "report: $folder/report.html" "$SCRATCH/said"
    check "read.py" sh -c 'python3 "$1/read.py" "$2" "$3" >"$2.cases"' sh "$here" "$folder" "$outcome"
    check "all of its cases" test "$(wc -l <"$folder.cases")" -eq 6
    cases "$folder.cases"
done

begin report/again
again() {
    cp "$SCRATCH/open/report.html" "$SCRATCH/first.html"
    report "$SCRATCH/open" && cmp -s "$SCRATCH/open/report.html" "$SCRATCH/first.html"
}
check "the same bytes each time" again

# A scheme with fewer seeds is compared over the seeds that it has; who has not learned a task at
# every seed has nothing to extrapolate.
begin report/seeds
says() { python3 -c 'import json, sys
claim = [c for c in json.load(open(sys.argv[1] + "/scoreboard.json")) if c["id"] == sys.argv[2]][0]
sys.exit(not (claim["verdict"] == sys.argv[3] and sys.argv[4] in claim["ours"]))' "$@"; }
fewer=$SCRATCH/fewer
cp -R "$SCRATCH/reproduced" "$fewer"
rm -r "$fewer"/runs/text/xpos/seed2 "$fewer"/runs/text/xpos/seed3
sed 's/^16,em,.*/16,em,0.5/' "$fewer/runs/copy/sinusoidal/seed2/metrics.csv" >"$SCRATCH/table"
cp "$SCRATCH/table" "$fewer/runs/copy/sinusoidal/seed2/metrics.csv"
check "locus lab report" report "$fewer"
check "R3 over one seed" says "$fewer" R3 reproduced "; 1 seed"
check "R12 without a run that learned" says "$fewer" R12 open "inside L"
check "R6 leaves it out" says "$fewer" R6 reproduced "sinusoidal left out: a seed below"

begin report/hostile
refuse() { ! report "$1" && test "$(wc -l <"$SCRATCH/complaint")" -eq 1 && grep -q "$2" "$SCRATCH/complaint"; }
check "no such folder" refuse "$SCRATCH/nowhere" "found no runs"
ln -s /etc "$SCRATCH/partial/runs/copy/t5/seed9"
check "a link to a folder without a run" report "$SCRATCH/partial"
echo kept >"$SCRATCH/kept"
for figure in "$SCRATCH"/partial/figures/*.svg; do ln -s "$SCRATCH/kept" "$figure.part"; done
check "links in the place of new figures" report "$SCRATCH/partial"
check "what the links name stays" grep -qx kept "$SCRATCH/kept"
printf 'length,metric,value\n16,em,1e999\n' >"$SCRATCH/partial/runs/copy/t5/seed1/metrics.csv"
check "a number that is none" refuse "$SCRATCH/partial" "seed1/metrics.csv: line 2"
rm "$SCRATCH/partial/runs/copy/t5/seed1/metrics.csv"
mkfifo "$SCRATCH/partial/runs/copy/t5/seed1/metrics.csv"
check "a FIFO" refuse "$SCRATCH/partial" "is a FIFO"

browser=$(cd "$ROOT/tests/page" && python3 -c 'import browser; print(browser.find() or "")')
if [ -z "$browser" ]; then
    begin report/browser
    skip "chromium is not installed"
    finish report
fi
begin report/browser
mkdir -p "$BUILD/tests/report" "$SCRATCH/look"
look() { python3 "$here/look.py" "$SCRATCH/reproduced/report.html" "$SCRATCH/look" "$BUILD/tests/report" >"$SCRATCH/look.cases"; }
check "look.py" look
check "all of its cases" test "$(wc -l <"$SCRATCH/look.cases")" -eq 12
cases "$SCRATCH/look.cases"
finish report
