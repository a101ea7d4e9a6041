# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
story=$GOLDEN/../../examples/stories260K
# A rotation of a model is the exact sum of its bands of frequency; of a call alone it is one term.
"$LOCUS" explain "$story" --text "Once upon a time" --layer 1 --head 2 --query 4 --json >row.json
"$LOCUS" explain "$story" --text "Once upon a time" --json >shares.json
"$LOCUS" explain "$story" --text "Once upon a time" --layer 0 --head 0 --json >all.json
"$LOCUS" plot "$story" --text "Once upon a time" --what share -o share.svg && grep -c '>turns' share.svg
"$LOCUS" explain --scheme rope --tokens "a b c" --query 2 --json >made.json
python3 - <<'END'
import json
row = json.load(open("row.json"))
print([term["name"] for term in row["terms"]])
seen = [pair for pair in row["pairs"] if pair["visible"]]
print(len(seen), max(abs(sum(pair["terms"]) - pair["score"]) for pair in seen) < 1e-12)
shares = json.load(open("shares.json"))["terms"]
totals = [sum(term["share"][layer][head] for term in shares) for layer in range(5) for head in range(8)]
print(max(abs(total - 1) for total in totals) < 1e-9)
print(abs(sum(term["variation"] for term in json.load(open("all.json"))["terms"]) - 1) < 1e-9)
print([term["name"] for term in json.load(open("made.json"))["terms"]])
END
