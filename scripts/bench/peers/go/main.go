// A worker process of the bench in Go; worker.ts is the one in Node. Arguments: candidate, host, port, ttl in ms.
//
// It replies to each request, a line of JSON on stdin, with a line of JSON on stdout, and says {} when it has started. It
// ends with its stdin.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"
)

type request struct {
	Observe  *int64   `json:"observe"`
	Load     string   `json:"load"`
	Settings settings `json:"settings"`
}

// Of any load. Absent numbers are 0. The fields are those of CyclesSettings and CallersSettings in loads/.
type settings struct {
	Callers     int     `json:"callers"`
	KeysEach    int     `json:"keysEach"`
	Keys        int     `json:"keys"`
	Work        float64 `json:"work"`
	WorkJitter  float64 `json:"workJitter"`
	Permits     int     `json:"permits"`
	Readers     int     `json:"readers"`
	Pause       float64 `json:"pause"`
	PauseJitter float64 `json:"pauseJitter"`
	Together    int     `json:"together"`
}

func main() {
	replies := json.NewEncoder(os.Stdout)
	reply := func(message any) {
		if err := replies.Encode(message); err != nil {
			os.Exit(1)
		}
	}
	fail := func(err error) {
		reply(map[string]string{"fault": err.Error()})
		os.Exit(1)
	}
	ttl, err := strconv.Atoi(os.Args[4])
	if err != nil {
		fail(err)
	}
	acquire, err := open(os.Args[1], net.JoinHostPort(os.Args[2], os.Args[3]), time.Duration(ttl)*time.Millisecond)
	if err != nil {
		fail(err)
	}
	reply(struct{}{})

	var current load
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() {
		var asked request
		if err := json.Unmarshal(input.Bytes(), &asked); err != nil {
			fail(err)
		}
		if asked.Observe != nil {
			reply(map[string]observation{"observation": observe(current, time.Duration(*asked.Observe)*time.Millisecond)})
			continue
		}
		if current, err = begin(acquire, asked.Load, asked.Settings, fail); err != nil {
			fail(err)
		}
		reply(struct{}{})
	}
}

func begin(acquire acquire, name string, given settings, fail func(error)) (load, error) {
	if given.Together > 0 || given.Readers > 0 {
		return nil, fmt.Errorf("it has neither locks of several keys nor readers")
	}
	switch name {
	case "cycles":
		return newCycles(acquire, given, fail), nil
	case "callers":
		return newCallers(acquire, given, fail), nil
	}
	return nil, fmt.Errorf("no load %q", name)
}
