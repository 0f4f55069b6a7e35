// A Go process that executes lock commands with the locks of bsm/redislock, redsync and rueidislock, in the line protocol of
// java/.../Peer.java. Its argument is the port of Redis.
package main

import (
	"bufio"
	"context"
	"errors"
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
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

type release func() error

// The locks of one library. try makes one attempt; take waits until it has the lock, or ctx is done. isRefusal: whether an
// error says that another program holds the lock; refusal is how people write that.
type library struct {
	try       func(name string) (release, error)
	take      func(ctx context.Context, name string) (release, error)
	isRefusal func(err error) bool
	refusal   string
}

// Where their waiters poll, they do so this often.
const interval = 50 * time.Millisecond

func bsm(client *redis.Client, ttl time.Duration) library {
	locker := redislock.New(client)
	obtain := func(ctx context.Context, name string, retry redislock.RetryStrategy) (release, error) {
		lock, err := locker.Obtain(ctx, name, ttl, &redislock.Options{RetryStrategy: retry, Metadata: "interop"})
		if err != nil {
			return nil, err
		}
		return func() error { return lock.Release(context.Background()) }, nil
	}
	return library{
		try: func(name string) (release, error) { return obtain(context.Background(), name, nil) },
		take: func(ctx context.Context, name string) (release, error) {
			for {
				end, err := obtain(ctx, name, redislock.LinearBackoff(interval))
				// Without a deadline in ctx it gives up after a ttl.
				if err == nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
					return end, err
				}
			}
		},
		isRefusal: func(err error) bool { return err == redislock.ErrNotObtained },
		refusal:   "Obtain: ErrNotObtained",
	}
}

func redsyncs(client *redis.Client, ttl time.Duration) library {
	locks := redsync.New(goredis.NewPool(client))
	held := func(mutex *redsync.Mutex) release {
		return func() error {
			isReleased, err := mutex.Unlock()
			if err == nil && !isReleased {
				err = redsync.ErrLockAlreadyExpired
			}
			return err
		}
	}
	return library{
		try: func(name string) (release, error) {
			mutex := locks.NewMutex(name, redsync.WithExpiry(ttl))
			return held(mutex), mutex.TryLock()
		},
		take: func(ctx context.Context, name string) (release, error) {
			for {
				mutex := locks.NewMutex(name, redsync.WithExpiry(ttl))
				err := mutex.LockContext(ctx)
				// It gives up after 32 tries, of about 5 s.
				if err == nil || ctx.Err() != nil {
					return held(mutex), err
				}
			}
		},
		isRefusal: func(err error) bool {
			var taken *redsync.ErrTaken
			return errors.As(err, &taken)
		},
		refusal: "TryLock: ErrTaken",
	}
}

// Its waiters may miss a release on a busy machine, and sleep while the lock is free: here they ask again after this time.
const longestSleep = 2 * time.Second

// Without NoLoopTracking a holder renews as fast as Redis answers. A waiter whose attempt takes longer than TryNextAfter, 20 ms
// unless given, is not notified of the next release.
func rueidislocks(address string, ttl time.Duration) library {
	locker, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption:   rueidis.ClientOption{InitAddress: []string{address}},
		KeyMajority:    1,
		KeyValidity:    ttl,
		NoLoopTracking: true,
		TryNextAfter:   5 * time.Second,
	})
	if err != nil {
		panic(err)
	}
	return library{
		try: func(name string) (release, error) {
			_, end, err := locker.TryWithContext(context.Background(), name)
			return func() error { end(); return nil }, err
		},
		take: func(ctx context.Context, name string) (release, error) {
			for ctx.Err() == nil {
				// No deadline, which would end the lock too.
				waiting, stop := context.WithCancel(context.Background())
				detach := context.AfterFunc(ctx, stop)
				again := time.AfterFunc(longestSleep, stop)
				_, end, err := locker.WithContext(waiting, name)
				isDetached := detach()
				isInTime := again.Stop()
				if err == nil && isDetached && isInTime {
					return func() error { end(); stop(); return nil }, nil
				}
				if err == nil {
					end()
				}
				stop()
			}
			return nil, ctx.Err()
		},
		isRefusal: func(err error) bool { return errors.Is(err, rueidislock.ErrNotLocked) },
		refusal:   "TryWithContext: ErrNotLocked",
	}
}

type caller struct {
	work chan func()
	held map[string]release
}

type peer struct {
	client    *redis.Client
	address   string
	libraries map[string]library
	callers   map[string]*caller
	writing   sync.Mutex
	opening   sync.Mutex
}

func (p *peer) libraryOf(kind string, ttl time.Duration) library {
	p.opening.Lock()
	defer p.opening.Unlock()
	of := kind + ttl.String()
	found, isThere := p.libraries[of]
	if isThere {
		return found
	}
	switch kind {
	case "bsm":
		found = bsm(p.client, ttl)
	case "redsync":
		found = redsyncs(p.client, ttl)
	case "rueidislock":
		found = rueidislocks(p.address, ttl)
	default:
		panic("unknown kind " + kind)
	}
	p.libraries[of] = found
	return found
}

func (p *peer) obey(c *caller, kind string, ttl time.Duration, verb, name string, arguments []string) (any, error) {
	locks := p.libraryOf(kind, ttl)
	ctx := context.Background()
	switch verb {
	case "lock":
		end, err := locks.take(ctx, name)
		c.held[name] = end
		return err == nil, err
	case "tryLock":
		end, err := locks.try(name)
		if len(arguments) > 0 && err != nil {
			limited, cancel := context.WithTimeout(ctx, ms(arguments[0]))
			defer cancel()
			end, err = locks.take(limited, name)
			if err != nil && limited.Err() != nil {
				return false, nil
			}
		}
		if err == nil {
			c.held[name] = end
		} else if locks.isRefusal(err) {
			return false, nil
		}
		return err == nil, err
	case "unlock":
		end := c.held[name]
		if end == nil {
			return nil, fmt.Errorf("lock %q is not held", name)
		}
		delete(c.held, name)
		return true, end()
	case "about":
		_, err := locks.try(name)
		if !locks.isRefusal(err) {
			return nil, fmt.Errorf("not refused: %v", err)
		}
		return locks.refusal, nil
	case "compete":
		callers, err := strconv.Atoi(arguments[0])
		if err != nil {
			return nil, err
		}
		take := func() (release, error) { return locks.take(ctx, name) }
		return compete(take, p.client, arguments[3]+":inside", callers, ms(arguments[1]), ms(arguments[2]))
	}
	return nil, errors.New("unknown verb " + verb)
}

// Goroutines that take one lock over and over, and hold it for work, until the time is over. compete.ts does the same.
func compete(take func() (release, error), oracle *redis.Client, inside string, callers int, work, observed time.Duration) (string, error) {
	ctx := context.Background()
	start := time.Now()
	end := start.Add(observed)
	var counting sync.Mutex
	var turns, violations int
	var longest time.Duration
	var failure error
	leftAt := start
	turn := func() error {
		release, err := take()
		if err != nil {
			return err
		}
		entered := time.Now()
		first, err := oracle.Incr(ctx, inside).Result()
		if err != nil {
			return err
		}
		counting.Lock()
		longest = max(longest, entered.Sub(leftAt))
		if first != 1 {
			violations++
		}
		if entered.Before(end) {
			turns++
		}
		counting.Unlock()
		time.Sleep(work)
		last, err := oracle.Decr(ctx, inside).Result()
		if err != nil {
			return err
		}
		counting.Lock()
		if last != 0 {
			violations++
		}
		leftAt = time.Now()
		counting.Unlock()
		return release()
	}
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for time.Now().Before(end) {
				if err := turn(); err != nil {
					counting.Lock()
					failure = err
					counting.Unlock()
					return
				}
			}
		})
	}
	all.Wait()
	return fmt.Sprintf("%d,%d,%d", turns, longest.Milliseconds(), violations), failure
}

func ms(text string) time.Duration {
	number, _ := strconv.Atoi(text)
	return time.Duration(number) * time.Millisecond
}

func (p *peer) say(line string) {
	p.writing.Lock()
	defer p.writing.Unlock()
	fmt.Println(line)
}

func (p *peer) hear(words []string) {
	id, kind, of, ttl, verb, name := words[0], words[1], words[2], ms(words[3]), words[4], words[5]
	c := p.callers[of]
	if c == nil {
		c = &caller{make(chan func(), 100), map[string]release{}}
		p.callers[of] = c
		go func() {
			for do := range c.work {
				do()
			}
		}()
	}
	c.work <- func() {
		value, err := p.obey(c, kind, ttl, verb, name, words[6:])
		if err != nil {
			p.say(id + " error " + strings.ReplaceAll(err.Error(), "\n", " "))
		} else {
			p.say(fmt.Sprintf("%s ok %v", id, value))
		}
	}
}

func main() {
	address := "127.0.0.1:" + os.Args[1]
	p := &peer{
		client:    redis.NewClient(&redis.Options{Addr: address}),
		address:   address,
		libraries: map[string]library{},
		callers:   map[string]*caller{},
	}
	p.say("ready")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		p.hear(strings.Split(lines.Text(), " "))
	}
}
