// Judges a history of locks, a file of one JSON object a line, with Porcupine. Prints one JSON object for each key.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"sort"
	"time"

	"github.com/anishathalye/porcupine"
)

// Leases in a drawing.
const drawn = 12

type verdict struct {
	Key        string `json:"key"`
	Operations int    `json:"operations"`
	Result     string `json:"result"`
}

func main() {
	limit := flag.Int("permits", 0, "of every semaphore")
	timeout := flag.Duration("timeout", time.Minute, "for one key")
	html := flag.String("html", "", "where to draw the history of the first key that is rejected")
	flag.Parse()
	if err := run(flag.Arg(0), *limit, *timeout, *html); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}

func run(path string, limit int, timeout time.Duration, html string) error {
	ofKey, err := read(path)
	if err != nil {
		return err
	}
	keys := make([]string, 0, len(ofKey))
	for key := range ofKey {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	model := lockModel(limit)
	for _, key := range keys {
		operations := ofKey[key]
		result := porcupine.CheckOperationsTimeout(model, operations, timeout)
		if result == porcupine.Illegal && html != "" {
			if err := draw(model, operations, html); err != nil {
				return err
			}
			html = ""
		}
		line, err := json.Marshal(verdict{key, len(operations), string(result)})
		if err != nil {
			return err
		}
		fmt.Println(string(line))
	}
	return nil
}

// draw shows what is wrong and little else. A history stays legal when a lease is left out, so the first leases that are
// illegal together are found by halving, and of these the last ones are drawn if they alone are illegal.
func draw(model porcupine.Model, operations []porcupine.Operation, html string) error {
	ofCall := map[string][]porcupine.Operation{}
	var calls []string
	for _, one := range operations {
		call := one.Input.(Step).Call
		if _, isKnown := ofCall[call]; !isKnown {
			calls = append(calls, call)
		}
		ofCall[call] = append(ofCall[call], one)
	}
	sort.SliceStable(calls, func(a, b int) bool { return ofCall[calls[a]][0].Return < ofCall[calls[b]][0].Return })
	between := func(from, to int) []porcupine.Operation {
		var some []porcupine.Operation
		for client, call := range calls[from:to] {
			for _, one := range ofCall[call] {
				one.ClientId = client
				some = append(some, one)
			}
		}
		return some
	}
	isIllegal := func(from, to int) bool { return !porcupine.CheckOperations(model, between(from, to)) }
	end := sort.Search(len(calls), func(count int) bool { return isIllegal(0, count) })
	begin := max(0, end-drawn)
	if !isIllegal(begin, end) {
		begin = 0
	}
	_, info := porcupine.CheckOperationsVerbose(model, between(begin, end), 0)
	return porcupine.VisualizePath(model, info, html)
}

func read(path string) (map[string][]porcupine.Operation, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	ofKey := map[string][]porcupine.Operation{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var step Step
		if err := json.Unmarshal(lines.Bytes(), &step); err != nil {
			return nil, err
		}
		ofKey[step.Key] = append(ofKey[step.Key], porcupine.Operation{Input: step, Call: step.From, Return: step.To})
	}
	return ofKey, lines.Err()
}
