#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `make static`, in full runs: one file, small, without an interpreter, that runs every command in a root where
# nothing else is; and the one for ARM under qemu.
. "$(dirname "$0")/../support/check.sh"

MOST_BYTES=6000000

if [ -z "${LOCUS_TEST_FULL-}" ]; then
    begin static/built
    skip "two builds of a minute each: make test-full has them"
    finish static
fi
if ! tools/zig.sh >/dev/null 2>"$SCRATCH/why"; then
    begin static/built
    skip "$(cat "$SCRATCH/why")"
    finish static
fi

at_most() { [ "$(wc -c <"$1")" -le "$2" ]; } # FILE BYTES
no_interpreter() { readelf -lW "$1" >"$SCRATCH/segments" && not grep -q INTERP "$SCRATCH/segments"; }

begin static/built
check "make static" make static "BUILD=$BUILD"
for cpu in x86_64 aarch64; do
    check "$cpu is there" test -x "$BUILD/static/locus-$cpu"
    check "$cpu has at most $MOST_BYTES bytes" at_most "$BUILD/static/locus-$cpu" $MOST_BYTES
    check "$cpu asks for no loader" no_interpreter "$BUILD/static/locus-$cpu"
done

begin static/empty-root
root=$SCRATCH/root
mkdir "$root"
cp "$BUILD/static/locus-x86_64" "$root/locus"
cp -r examples/stories260K "$root/model"
cp tests/golden/t5/encoder.safetensors "$root/case.safetensors"
if [ "$(id -u)" -eq 0 ]; then enter=chroot
elif unshare -r true 2>/dev/null; then enter="unshare -r chroot"
else enter=; fi
inside() { $enter "$root" /locus "$@"; }

# Every command of the help, each by one call; one that this list does not know fails.
call_of() {
    case $1 in
    attend) inside attend case.safetensors --check ;;
    help) inside help attend ;;
    schemes) inside schemes ;;
    plot) inside plot t5 -o plot.svg && test -s "$root/plot.svg" ;;
    explain) inside explain case.safetensors && inside explain model --text "Once upon" -o page.html && test -s "$root/page.html" ;;
    inspect) inside inspect model ;;
    run) inside run model "Once upon a time" ;;
    tokenize) inside tokenize model Hello ;;
    serve) not inside serve model 2>"$SCRATCH/serve" && grep -q 'built without libmicrohttpd' "$SCRATCH/serve" ;;
    demo) inside demo --output demo && test -s "$root/demo/index.html" ;;
    lab) inside lab train --task copy --scheme alibi --steps 2 -o run && inside lab export run -o exported ;;
    bench) inside bench --scheme none -n 64 ;;
    *) echo "no call of $1 in this test"; return 1 ;;
    esac
}
if [ -n "$enter" ]; then
    "$LOCUS" --help | sed -n '/^Commands/,/^$/s/^  \([a-z]*\) .*/\1/p' >"$SCRATCH/commands"
    check "the help names commands" test -s "$SCRATCH/commands"
    while read -r command; do check "$command" call_of "$command"; done <"$SCRATCH/commands"
    "$LOCUS" run examples/stories260K "Once upon a time" --threads 1 >"$SCRATCH/native"
    inside run model "Once upon a time" --threads 1 >"$SCRATCH/inside"
    check "the text of the ordinary build" cmp "$SCRATCH/native" "$SCRATCH/inside"
else
    skip "neither root nor unshare"
fi

begin static/aarch64
if command -v qemu-aarch64 >/dev/null; then
    check "a case holds" qemu-aarch64 "$BUILD/static/locus-aarch64" attend tests/golden/t5/encoder.safetensors --check
    qemu-aarch64 "$BUILD/static/locus-aarch64" run examples/stories260K "Once upon a time" >"$SCRATCH/arm"
    "$LOCUS" run examples/stories260K "Once upon a time" >"$SCRATCH/native"
    check "the text of the ordinary build" cmp "$SCRATCH/native" "$SCRATCH/arm"
else
    skip "qemu-aarch64 is not installed"
fi

finish static
