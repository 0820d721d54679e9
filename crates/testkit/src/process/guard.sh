# Outlives the process that started it: when the pipe on its standard input closes, in whatever way that process ended,
# it ends the children that were still registered and removes the scratch directories given as its arguments.
#
#   hold PID SIGNAL   a child started; SIGNAL lets it take its own children with it
#   free PID          that child was reaped

trap '' HUP INT QUIT TERM

children=
while read -r verb pid signal; do
    case $verb in
    hold) children="$children $pid/$signal" ;;
    free)
        kept=
        for child in $children; do
            [ "${child%/*}" = "$pid" ] || kept="$kept $child"
        done
        children=$kept
        ;;
    esac
done

for child in $children; do
    kill -s "${child#*/}" "${child%/*}"
done
tries=20
for child in $children; do
    while [ "$tries" -gt 0 ] && kill -s 0 "${child%/*}"; do
        tries=$((tries - 1))
        sleep 0.05
    done
    # The whole group; of the ways to write it this is the one that every shell understands.
    kill -KILL "-${child%/*}"
done

# What is just being killed may still create files.
for scratch in "$@"; do
    tries=50
    while rm -rf "$scratch"; [ -e "$scratch" ] && [ "$tries" -gt 0 ]; do
        tries=$((tries - 1))
        sleep 0.1
    done
done
