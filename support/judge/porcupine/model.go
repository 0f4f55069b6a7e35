package main

import (
	"fmt"
	"sort"
	"strconv"
	"strings"

	"github.com/anishathalye/porcupine"
)

// Step is one operation of a history, as support/judge/history.ts writes it. Times are nanoseconds.
type Step struct {
	// "acquire": the caller got the lock. "end": its right ended. "told": it was told that its right is over.
	Do      string `json:"do"`
	Key     string `json:"key"`
	Call    string `json:"call"`
	Access  string `json:"access"`
	Permits int    `json:"permits"`
	// Of an "acquire"; 0: it has none.
	Token int64 `json:"token"`
	From  int64 `json:"from"`
	To    int64 `json:"to"`
}

// A lock in the middle of a history: who is inside, and the last token. The text of the holders makes it comparable.
type lock struct {
	holders string
	token   int64
}

type holder struct {
	call    string
	access  string
	permits int
}

func (l lock) inside() []holder {
	if l.holders == "" {
		return nil
	}
	var all []holder
	for _, text := range strings.Split(l.holders, ",") {
		parts := strings.Split(text, "|")
		permits, _ := strconv.Atoi(parts[2])
		all = append(all, holder{parts[0], parts[1], permits})
	}
	return all
}

func (l lock) with(all []holder) lock {
	texts := make([]string, 0, len(all))
	for _, one := range all {
		texts = append(texts, fmt.Sprintf("%s|%s|%d", one.call, one.access, one.permits))
	}
	sort.Strings(texts)
	return lock{strings.Join(texts, ","), l.token}
}

// mayEnter: a writer and the holder of a plain lock are alone, readers are among readers, permits are counted.
func mayEnter(step Step, inside []holder, limit int) bool {
	taken := step.Permits
	for _, one := range inside {
		taken += one.permits
		if one.access != step.Access || step.Access == "exclusive" || step.Access == "write" {
			return false
		}
	}
	return step.Access != "permit" || taken <= limit
}

// A fenced lock whose holds may expire. A hold expires by an "end" that may happen at any time after the last moment
// that was promised to its caller. The tokens of the calls that have one rise.
func lockModel(limit int) porcupine.Model {
	return porcupine.Model{
		Init: func() interface{} { return lock{} },
		Step: func(state, input, _ interface{}) (bool, interface{}) {
			before, step := state.(lock), input.(Step)
			inside := before.inside()
			position := -1
			for i, one := range inside {
				if one.call == step.Call {
					position = i
				}
			}
			switch step.Do {
			case "acquire":
				if !mayEnter(step, inside, limit) || (step.Token != 0 && step.Token <= before.token) {
					return false, before
				}
				after := before.with(append(inside, holder{step.Call, step.Access, step.Permits}))
				if step.Token != 0 {
					after.token = step.Token
				}
				return true, after
			case "end":
				if position < 0 {
					return false, before
				}
				return true, before.with(append(inside[:position:position], inside[position+1:]...))
			default: // "told"
				return position < 0, before
			}
		},
		DescribeOperation: func(input, _ interface{}) string {
			step := input.(Step)
			text := fmt.Sprintf("%s %s", step.Call, step.Do)
			if step.Do == "acquire" && step.Token != 0 {
				text += fmt.Sprintf(" token %d", step.Token)
			}
			return text
		},
		DescribeState: func(state interface{}) string {
			l := state.(lock)
			if l.holders == "" {
				return fmt.Sprintf("free, last token %d", l.token)
			}
			return fmt.Sprintf("%s, last token %d", l.holders, l.token)
		},
	}
}
