package main

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// Goroutines that lock, work and unlock in a loop. Every acquisition is recorded; as loads/callers.ts.
type callers struct {
	acquire acquire
	given   settings
	fail    func(error)
	// Guards what follows.
	mutex      sync.Mutex
	waiting    map[*acquisition]struct{}
	log        []*acquisition
	taken      []int
	violations int
}

func newCallers(acquire acquire, given settings, fail func(error)) *callers {
	c := &callers{
		acquire: acquire,
		given:   given,
		fail:    fail,
		waiting: map[*acquisition]struct{}{},
		taken:   make([]int, given.Keys),
	}
	for caller := range given.Callers {
		go c.loop(caller)
	}
	return c
}

func (c *callers) loop(caller int) {
	for {
		c.acquireOnce(caller)
		if c.given.Pause > 0 {
			sleep(c.given.Pause, c.given.PauseJitter)
		}
	}
}

func (c *callers) acquireOnce(caller int) {
	key := caller % c.given.Keys
	one := &acquisition{Caller: caller, RequestedAt: now()}
	c.do(func() { c.waiting[one] = struct{}{} })
	release, err := c.acquire(fmt.Sprintf("key-%d", key))
	if err != nil {
		c.fail(err)
	}
	enteredAt := now()
	c.do(func() {
		one.EnteredAt = &enteredAt
		delete(c.waiting, one)
		c.log = append(c.log, one)
		c.taken[key]++
		if c.taken[key] > max(1, c.given.Permits) {
			c.violations++
		}
	})
	if c.given.Work > 0 {
		sleep(c.given.Work, c.given.WorkJitter)
	}
	c.do(func() {
		c.taken[key]--
		leftAt := now()
		one.LeftAt = &leftAt
	})
	if err := release(); err != nil {
		c.fail(err)
	}
}

func (c *callers) do(task func()) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	task()
}

// For `ms` and a random addition of up to `jitter`.
func sleep(ms float64, jitter float64) {
	time.Sleep(time.Duration((ms + rand.Float64()*jitter) * 1e6))
}

func (c *callers) observe(window time.Duration) {
	c.do(func() { c.log = nil })
	time.Sleep(window)
}

func (c *callers) result() (durations []float64, acquisitions []acquisition, violations int) {
	acquisitions = []acquisition{}
	c.do(func() {
		for _, one := range c.log {
			acquisitions = append(acquisitions, *one)
		}
		for one := range c.waiting {
			acquisitions = append(acquisitions, *one)
		}
		violations = c.violations
	})
	return []float64{}, acquisitions, violations
}
