#!/bin/sh
# Runs a compiler command; what ptxas reports goes to OBJECT.ptxas beside the object that `-o`
# names, everything else to standard error as it was. The report begins with what `times`
# says: processor time of this script, then of the compiler.
object=
previous=
for word in "$@"; do
  [ "$previous" = -o ] && object=$word
  previous=$word
done
[ -n "$object" ] || exec "$@"

said=$object.said
"$@" 2>"$said"
code=$?
times >"$object.ptxas"
cat "$said" >>"$object.ptxas"
grep -v -e '^ptxas info *: [^(]' -e '^ *[0-9]* bytes stack frame' -e '^$' "$said" >&2
rm -f "$said"
[ "$code" -eq 0 ] || rm -f "$object.ptxas"
exit "$code"
