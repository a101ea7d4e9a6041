# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
need bash
for kind in man bash zsh fish; do
    "$LOCUS" --generate $kind >locus.$kind || echo "$kind failed"
done
bash -n locus.bash
command -v zsh >/dev/null && zsh -n locus.zsh
command -v fish >/dev/null && fish -n locus.fish
command -v man >/dev/null && man --warnings -l locus.man >page 2>warnings && cat warnings
command -v mandoc >/dev/null && mandoc -T lint -W error locus.man
# Every option of every command is in all four.
for command in attend schemes plot explain inspect demo bench help; do
    "$LOCUS" $command --help | sed -n 's/^  ....--\([a-z]*\).*/\1/p'
done | sort -u >options
for option in $(cat options); do
    grep -q -e "--$option" locus.bash || echo "bash: no $option"
    grep -q -e "--$option" locus.zsh || echo "zsh: no $option"
    grep -q -e "-l $option" locus.fish || echo "fish: no $option"
    grep -q -e "-$option" locus.man || echo "man: no $option"
done
tr '\n' ' ' <options
