package main

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// What one process measured in one window; loads/load.ts describes it. Times are in ms.
type observation struct {
	Time         float64            `json:"time"`
	End          float64            `json:"end"`
	CPU          float64            `json:"cpu"`
	Durations    []float64          `json:"durations"`
	Acquisitions []acquisition      `json:"acquisitions"`
	Violations   int                `json:"violations"`
	Heap         map[string]float64 `json:"heap"`
}

// JSON has no infinite numbers: nil stands for "not yet".
type acquisition struct {
	Caller      int      `json:"caller"`
	RequestedAt float64  `json:"requestedAt"`
	EnteredAt   *float64 `json:"enteredAt"`
	LeftAt      *float64 `json:"leftAt"`
}

// Work of the process, which is observed in windows.
type load interface {
	observe(window time.Duration)
	// Of the window that has just ended.
	result() (durations []float64, acquisitions []acquisition, violations int)
}

func observe(current load, window time.Duration) observation {
	startedAt, cpuBefore := now(), cpu()
	current.observe(window)
	used := cpu() - cpuBefore
	// Before the result is read: what is missing in it happened after the end.
	end := now()
	durations, acquisitions, violations := current.result()
	return observation{end - startedAt, end, used, durations, acquisitions, violations, map[string]float64{}}
}

// ms of the machine's monotonic clock, as `now` in clock.ts.
func now() float64 {
	var at unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &at)
	return float64(at.Nano()) / 1e6
}

// ms of CPU of the process.
func cpu() float64 {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e6
}
