package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/bloom"
	"github.com/sendgate/sendgate/catalogfile"
)

// rejected is what finding an opt-out takes, by the benchmark beside the code
// of the filter.
type rejected struct{ plain, ours, allocations float64 } // nanoseconds; allocations of ours

// reject runs that benchmark, with a number of opt-outs.
func reject(ctx context.Context, keys int) (r rejected, err error) {
	c := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", "^BenchmarkReject$", "-benchmem", "-count", "3", "-timeout", "60m", "./bloom")
	c.Env = append(os.Environ(), fmt.Sprint("SENDGATE_BENCH_KEYS=", keys))
	out, err := c.CombinedOutput()
	if err != nil {
		return r, fmt.Errorf("%w: %s", err, out)
	}
	return parseReject(string(out))
}

var benchLine = regexp.MustCompile(`(?m)^BenchmarkReject/(\S+?)(?:-\d+)?\s+\d+\s+([0-9.]+) ns/op.*?\s(\d+) allocs/op`)

func parseReject(out string) (r rejected, err error) {
	nanoseconds := map[string][]float64{}
	for _, line := range benchLine.FindAllStringSubmatch(out, -1) {
		ns, err := strconv.ParseFloat(line[2], 64)
		if err != nil {
			return r, err
		}
		nanoseconds[line[1]] = append(nanoseconds[line[1]], ns)
		if line[1] == "overlay_and_filter" {
			allocations, err := strconv.ParseFloat(line[3], 64)
			if err != nil {
				return r, err
			}
			r.allocations = max(r.allocations, allocations)
		}
	}
	r.plain, r.ours = median(nanoseconds["plain_Test,_key_made_before"]), median(nanoseconds["overlay_and_filter"])
	if r.plain == 0 || r.ours == 0 {
		return r, errors.New("the benchmark in ./bloom has other names than are looked for here")
	}
	return r, nil
}

// rejectAllocations counts what a gate allocates to decide on somebody who has
// opted out, without HTTP and JSON.
func rejectAllocations() (float64, error) {
	c, err := catalogfile.Parse("catalog.yaml", []byte(catalog))
	if err != nil {
		return 0, err
	}
	overlay := bloom.NewOverlay(100)
	overlay.SetLive(true)
	overlay.Apply(sendgate.Consent{User: "u", Revision: 1, Settings: sendgate.Settings{{Topic: topic, Channel: channel}: false}}, sendgate.Place{})
	gate := sendgate.NewGate(sendgate.Options{Catalog: c, Overlay: overlay, Records: unused{}, Caps: unused{}, Observer: unused{}})
	check := sendgate.Check{NotificationID: "n", User: "u", Topic: topic, Channel: channel}
	var fault error
	allocations := testing.AllocsPerRun(1000, func() {
		d, err := gate.Decide(context.Background(), check)
		if fault = err; err == nil && d.Reason != sendgate.ReasonOptedOut {
			fault = fmt.Errorf("the gate says %v", d.Reason)
		}
	})
	return allocations, fault
}

// unused is what a gate does not reach when it rejects in process.
type unused struct{}

func (unused) Read(context.Context, []sendgate.RecordAsk) []sendgate.RecordAnswer { return nil }
func (unused) Judge(context.Context, []sendgate.CapAsk, int) []sendgate.CapAnswer { return nil }
func (unused) Settle(context.Context, []sendgate.CapReport) []sendgate.CapReceipt { return nil }
func (unused) Decided(*sendgate.Check, *sendgate.Decision, sendgate.Mode)         {}
func (unused) Settled(*sendgate.Settlement)                                       {}
func (unused) StepTook(sendgate.Step, int, time.Duration)                         {}
func (unused) ZoneFellBack()                                                      {}
