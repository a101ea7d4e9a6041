# SPDX-License-Identifier: Apache-2.0
# Tables and chart; figures become "#".
. "$SUPPORT/lib.sh"
need python3
tiny='--n 16 --d 8 --heads 2 --rounds 3 --isa generic --no-baseline --scheme alibi'
figures() { sed -n 's/  */ /g; s/-*$//; /^scheme\|^|\|^alibi/p' | sed 's/\([0-9.]\{1,\}e\)[-+]/\1/g; s/[0-9.]\{1,\}e[0-9]*/#/g; s/ [0-9][0-9.-]*/ #/g; s/ *$//'; }
"$LOCUS" bench $tiny >table
echo "exit $?"
figures <table
"$LOCUS" bench $tiny --markdown --svg chart.svg >table
echo "exit $?"
figures <table
absent chart.svg.part
python3 -c '
import xml.dom.minidom
chart = xml.dom.minidom.parse("chart.svg").documentElement
print(chart.tagName, len(chart.getElementsByTagName("rect")))'
"$LOCUS" bench $tiny --tokens >table
echo "exit $?"
figures <table
"$LOCUS" bench $tiny --direction forward --dropout 0.25 --threads 1,2 >table
echo "exit $?"
figures <table
try bench $tiny --svg no/such/folder/chart.svg >table
tail -n 1 table
