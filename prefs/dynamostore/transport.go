package dynamostore

import (
	"bytes"
	"errors"
	"hash/crc32"
	"io"
	"net/http"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
)

// maxIdle is how many connections are kept for the next call. The SDK keeps 10,
// and a gate under load would open one for most calls beyond those.
const maxIdle = 256

// checksumHeader has the checksum of an answer. Not every server that speaks
// this protocol sends one.
const checksumHeader = "X-Amz-Crc32"

var (
	errEmptyAnswer   = errors.New("the answer is empty")
	errGarbledAnswer = errors.New("the answer is not what its checksum was made from")
)

// newHTTPClient makes a client with connections of its own, and what closes the
// idle ones. One that the SDK did not make is used as it is, and left alone.
func newHTTPClient(given aws.HTTPClient) (client aws.HTTPClient, idle func()) {
	buildable, ok := given.(*awshttp.BuildableClient) // with the operator's own authorities, for one
	switch {
	case given == nil:
		buildable = awshttp.NewBuildableClient()
	case !ok:
		return strictClient{given}, func() {}
	}
	// Frozen, the SDK's client would keep its connections where nobody can
	// close them.
	transport := buildable.GetTransport()
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = maxIdle, maxIdle
	own := &http.Client{
		Transport: transport, Timeout: buildable.GetTimeout(),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return strictClient{own}, transport.CloseIdleConnections
}

// strictClient refuses a success that says nothing, where even an answer without
// an item has braces, and one that is not what its checksum was made from. The
// SDK takes the first for an answer without an item, and of the second it writes
// a warning.
type strictClient struct{ client aws.HTTPClient }

func (c strictClient) Do(r *http.Request) (*http.Response, error) {
	answer, err := c.client.Do(r)
	if err != nil || answer.StatusCode < 200 || answer.StatusCode > 299 {
		return answer, err
	}
	body, err := io.ReadAll(answer.Body) // of a few megabytes at most, which the SDK reads whole as well
	if err = errors.Join(err, answer.Body.Close()); err != nil {
		return nil, err
	}
	if len(body) == 0 {
		return nil, errEmptyAnswer
	}
	if want := answer.Header.Get(checksumHeader); want != "" && want != strconv.FormatUint(uint64(crc32.ChecksumIEEE(body)), 10) {
		return nil, errGarbledAnswer
	}
	answer.Body = io.NopCloser(bytes.NewReader(body))
	return answer, nil
}
