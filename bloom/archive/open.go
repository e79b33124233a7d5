package archive

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"
	"gocloud.dev/blob/s3blob"
)

// The parameters of an s3 URL that are read here; all others are s3blob's.
const (
	prefixParam          = "prefix"
	endpointParam        = "endpoint"
	pathStyleParam       = "use_path_style"
	legacyPathStyleParam = "s3ForcePathStyle"
)

// Open opens the archive at a URL for the snapshots of a namespace (1 to 32 of
// a-z, 0-9, _ and -). Archives of several namespaces may share a place.
//
//   - file:///absolute/folder: a folder of this machine, made if it is missing.
//   - s3://bucket: an S3 bucket, with credentials and region by the AWS SDK's
//     own chain. Parameters: region, endpoint (a server other than AWS's, which
//     is then asked for http://server/bucket rather than http://bucket.server,
//     unless use_path_style=false), prefix (a folder in the bucket), and those
//     of gocloud.dev/blob/s3blob.
//
// The server of a bucket is not asked, so that a gate can start without it.
func Open(ctx context.Context, rawURL, namespace string) (*Archive, error) {
	names, err := newNames(namespace)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(rawURL)
	if err != nil {
		// Without the URL itself, which may hold a password.
		if parse := (*url.Error)(nil); errors.As(err, &parse) {
			err = parse.Err
		}
		return nil, fmt.Errorf("the archive's URL: %w", err)
	}
	var a *Archive
	switch {
	case u.User != nil || u.Fragment != "":
		err = errors.New("a user, a password and a #fragment have no place in it")
	case u.Scheme == fileblob.Scheme:
		a, err = openFolder(u)
	case u.Scheme == s3blob.Scheme:
		a, err = openBucket(ctx, u)
	default:
		err = errors.New("must begin with file:// or s3://")
	}
	if err != nil {
		return nil, fmt.Errorf("the archive's URL %q: %w", u.Redacted(), err)
	}
	a.names = names
	return a, nil
}

func openFolder(u *url.URL) (*Archive, error) {
	local := u.Host == "" || u.Host == "localhost"
	switch {
	case u.Opaque != "" || !local || !path.IsAbs(u.Path):
		return nil, errors.New("must name an absolute folder, file:///absolute/folder")
	case u.RawQuery != "":
		return nil, errors.New("a folder takes no parameters")
	}
	dir, err := makeFolder(u.Path)
	if err != nil {
		return nil, err
	}
	// There is no metadata worth a second file beside every snapshot.
	bucket, err := fileblob.OpenBucket(dir, &fileblob.Options{Metadata: fileblob.MetadataDontWrite})
	if err != nil {
		return nil, err
	}
	return &Archive{where: dir, bucket: bucket, place: folder{dir, bucket}}, nil
}

func openBucket(ctx context.Context, u *url.URL) (*Archive, error) {
	switch {
	case u.Hostname() == "" || u.Opaque != "":
		return nil, errors.New("must name a bucket, s3://bucket")
	case u.Port() != "":
		return nil, errors.New("must name a bucket, s3://bucket; a server of your own is given as ?endpoint=")
	case strings.Trim(u.Path, "/") != "":
		return nil, errors.New("a folder in the bucket is given as ?prefix=")
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, err
	}
	prefix := strings.Trim(query.Get(prefixParam), "/")
	query.Del(prefixParam)
	if query.Has(endpointParam) && !query.Has(pathStyleParam) && !query.Has(legacyPathStyleParam) {
		// bucket.127.0.0.1 is no name, and few servers have one for every bucket.
		query.Set(pathStyleParam, "true")
	}
	location := url.URL{Scheme: u.Scheme, Host: u.Host}
	where := location.String()
	location.RawQuery = query.Encode()

	bucket, err := new(s3blob.URLOpener).OpenBucketURL(ctx, &location)
	if err != nil {
		return nil, err
	}
	var client *s3.Client
	if bucket.As(&client) && client.Options().Region == "" {
		return nil, errors.Join(errors.New("no region: give ?region= or set AWS_REGION"), bucket.Close())
	}
	if prefix != "" {
		where += "/" + prefix
		bucket = blob.PrefixedBucket(bucket, prefix+"/")
	}
	return &Archive{where: where, bucket: bucket, place: objects{bucket}}, nil
}
