// Locks of redsync and bsm/redislock for `npm run torture`; torture/peers.ts describes the lines. Arguments:
// library, host, port, ttl and wait in ms.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

type lock struct {
	left    func() (time.Duration, error)
	release func() error
}

type opener func(ctx context.Context, key string) (*lock, error)

func openRedsync(client *redis.Client, ttl time.Duration) opener {
	pool := redsync.New(goredis.NewPool(client))
	return func(ctx context.Context, key string) (*lock, error) {
		mutex := pool.NewMutex(key, redsync.WithExpiry(ttl))
		if err := mutex.LockContext(ctx); err != nil {
			return nil, err
		}
		left := func() (time.Duration, error) { return time.Until(mutex.Until()), nil }
		release := func() error {
			isReleased, err := mutex.Unlock()
			if err == nil && !isReleased {
				err = redsync.ErrLockAlreadyExpired
			}
			return err
		}
		return &lock{left, release}, nil
	}
}

func openRedislock(client *redis.Client, ttl time.Duration) opener {
	locker := redislock.New(client)
	return func(ctx context.Context, key string) (*lock, error) {
		options := &redislock.Options{RetryStrategy: redislock.LinearBackoff(100 * time.Millisecond)}
		held, err := locker.Obtain(ctx, key, ttl, options)
		if err != nil {
			return nil, err
		}
		left := func() (time.Duration, error) { return held.TTL(context.Background()) }
		return &lock{left, func() error { return held.Release(context.Background()) }}, nil
	}
}

func ms(text string) time.Duration {
	number, _ := strconv.Atoi(text)
	return time.Duration(number) * time.Millisecond
}

func main() {
	library, ttl, wait := os.Args[1], ms(os.Args[4]), ms(os.Args[5])
	client := redis.NewClient(&redis.Options{Addr: os.Args[2] + ":" + os.Args[3]})
	open := openRedsync(client, ttl)
	if library == "redislock" {
		open = openRedislock(client, ttl)
	}
	var locks sync.Map
	answer := func(words []string) (string, error) {
		if words[0] == "lock" {
			ctx, cancel := context.WithTimeout(context.Background(), wait)
			defer cancel()
			held, err := open(ctx, words[2])
			if err != nil {
				return "", err
			}
			locks.Store(words[1], held)
			return "yes", nil
		}
		found, _ := locks.Load(words[1])
		held := found.(*lock)
		if words[0] == "release" {
			locks.Delete(words[1])
			return "yes", held.release()
		}
		left, err := held.left()
		return strconv.FormatInt(max(0, left.Milliseconds()), 10), err
	}
	var writing sync.Mutex
	say := func(text string) {
		writing.Lock()
		defer writing.Unlock()
		fmt.Println(text)
	}
	say("ready")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		words := strings.Fields(lines.Text())
		go func() {
			text, err := answer(words)
			if err != nil {
				text = "failed " + strings.ReplaceAll(err.Error(), "\n", " ")
			}
			say(words[0] + " " + words[1] + " " + text)
		}()
	}
}
