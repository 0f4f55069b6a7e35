package main

import (
	"fmt"
	"sync"
	"time"
)

// Goroutines that lock and unlock keys of their own in a loop, only while they are observed; as loads/cycles.ts.
type cycles struct {
	acquire acquire
	fail    func(error)
	keys    [][]string
	// Each caller continues where the window before ended.
	cyclesOf  []int
	durations []float64
}

func newCycles(acquire acquire, given settings, fail func(error)) *cycles {
	keysEach := max(1, given.KeysEach)
	keys := make([][]string, given.Callers)
	for caller := range keys {
		for i := range keysEach {
			keys[caller] = append(keys[caller], fmt.Sprintf("key-%d", caller*keysEach+i))
		}
	}
	return &cycles{acquire: acquire, fail: fail, keys: keys, cyclesOf: make([]int, given.Callers)}
}

func (c *cycles) observe(window time.Duration) {
	end := time.Now().Add(window)
	times := make([][]float64, len(c.keys))
	var callers sync.WaitGroup
	for caller := range c.keys {
		callers.Add(1)
		go func() {
			defer callers.Done()
			times[caller] = c.loop(caller, end)
		}()
	}
	callers.Wait()
	c.durations = []float64{}
	for _, ofCaller := range times {
		c.durations = append(c.durations, ofCaller...)
	}
}

func (c *cycles) loop(caller int, end time.Time) []float64 {
	times := []float64{}
	keys := c.keys[caller]
	for startedAt := time.Now(); startedAt.Before(end); {
		release, err := c.acquire(keys[c.cyclesOf[caller]%len(keys)])
		if err == nil {
			err = release()
		}
		if err != nil {
			c.fail(err)
		}
		c.cyclesOf[caller]++
		endedAt := time.Now()
		times = append(times, float64(endedAt.Sub(startedAt).Nanoseconds())/1e6)
		startedAt = endedAt
	}
	return times
}

func (c *cycles) result() ([]float64, []acquisition, int) {
	return c.durations, []acquisition{}, 0
}
