// Checks histories of acts with Porcupine: one act a line, "ID TOKEN TASK KIND SEQUENCE BEFORE AFTER". An ID is
// a register of its owner and token. An act is allowed to the owner, and to a task with a higher token, which
// becomes the owner. It took effect between BEFORE and AFTER. Prints each ID whose acts have no such order.
package main

import (
	"bufio"
	"fmt"
	"os"
	"sort"
	"time"

	"github.com/anishathalye/porcupine"
)

type owner struct {
	token int64
	task  string
}

var model = porcupine.Model{
	Init: func() interface{} { return owner{} },
	Step: func(state, input, output interface{}) (bool, interface{}) {
		now, act := state.(owner), input.(owner)
		return act.token > now.token || act == now, act
	},
}

func main() {
	acts := map[int][]porcupine.Operation{}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var id, sequence int
		var act owner
		var kind string
		var before, after int64
		if _, err := fmt.Sscan(lines.Text(), &id, &act.token, &act.task, &kind, &sequence, &before, &after); err != nil {
			fmt.Fprintf(os.Stderr, "%q: %v\n", lines.Text(), err)
			os.Exit(64)
		}
		acts[id] = append(acts[id], porcupine.Operation{Input: act, Call: before, Return: after})
	}
	ids := []int{}
	for id := range acts {
		ids = append(ids, id)
	}
	sort.Ints(ids)
	for _, id := range ids {
		if result := porcupine.CheckOperationsTimeout(model, acts[id], time.Minute); result != porcupine.Ok {
			fmt.Printf("%d %s %d\n", id, result, len(acts[id]))
		}
	}
}
