package client_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"
	"time"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/catalogfile"
	"github.com/sendgate/sendgate/client"
)

// A router asks before each notification, and reports what became of it. Here
// no gate listens, so that the client decides as the categories say.
func Example() {
	gate := httptest.NewServer(nil)
	gate.Close()

	c, err := client.New(client.Options{
		URLs:    []string{gate.URL},
		Timeout: 50 * time.Millisecond,
		// Better embedded from a file: curl gate:8080/v1/catalog > catalog.json
		Catalog: catalogfile.Sample(),
	})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	ctx := context.Background()
	for _, topic := range []string{"order_updates", "promotions"} {
		d, err := c.Check(ctx, sendgate.Check{NotificationID: "n_1", User: "u_42", Topic: topic, Channel: "push"})
		if err != nil {
			fmt.Println("the check is wrong:", err)
			continue
		}
		switch d.Verdict {
		case sendgate.Allow:
			fmt.Println(topic, "is sent:", d.Reason) // and then reported:
			_, err = c.Report(ctx, []sendgate.Outcome{d.Outcome(sendgate.Delivered)})
			fmt.Println("to be reported again:", err != nil)
		case sendgate.Defer:
			fmt.Println(topic, "waits until", d.DeliverAt)
		case sendgate.Suppress:
			fmt.Println(topic, "is not sent:", d.Reason)
		}
	}
	fmt.Println("decided by the client:", c.Stats().Allowed+c.Stats().Suppressed)
	// Output:
	// order_updates is sent: unverified
	// to be reported again: true
	// promotions is not sent: unverifiable
	// decided by the client: 2
}
