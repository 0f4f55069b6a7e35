package main

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

// Waits without a limit, and returns the release.
type acquire func(key string) (func() error, error)

// Opens a library with its defaults; only a limit on the number of attempts is lifted.
func open(candidate string, address string, ttl time.Duration) (acquire, error) {
	ctx := context.Background()
	switch candidate {
	case "rueidislock":
		// As its page advises for one server, and for Redis from 7.0.5.
		locker, err := rueidislock.NewLocker(rueidislock.LockerOption{
			ClientOption:   rueidis.ClientOption{InitAddress: []string{address}},
			KeyValidity:    ttl,
			KeyMajority:    1,
			NoLoopTracking: true,
		})
		if err != nil {
			return nil, err
		}
		return func(key string) (func() error, error) {
			_, cancel, err := locker.WithContext(ctx, key)
			return func() error { cancel(); return nil }, err
		}, nil
	case "redsync":
		locks := redsync.New(goredis.NewPool(redis.NewClient(&redis.Options{Addr: address})))
		return func(key string) (func() error, error) {
			// Default: gives up after 32 attempts.
			mutex := locks.NewMutex(key, redsync.WithExpiry(ttl), redsync.WithTries(math.MaxInt))
			return func() error { _, err := mutex.Unlock(); return err }, mutex.Lock()
		}, nil
	case "bsm-redislock":
		client := redislock.New(redis.NewClient(&redis.Options{Addr: address}))
		// Default: no retry. This is that of the example on its page.
		options := &redislock.Options{RetryStrategy: redislock.LinearBackoff(100 * time.Millisecond)}
		// Without a deadline, a call gives up when its ttl is over.
		forever, stop := context.WithTimeout(ctx, 24*time.Hour)
		_ = stop
		return func(key string) (func() error, error) {
			lock, err := client.Obtain(forever, key, ttl, options)
			return func() error { return lock.Release(ctx) }, err
		}, nil
	}
	return nil, fmt.Errorf("no candidate %q", candidate)
}
