# One image with both programs of Sendgate and nothing else: no shell, no
# package manager, no user but a number.
#
#   docker build --build-arg VERSION="$(git describe --tags --always)" -t sendgate .
#   docker run … sendgate gate serve --config /etc/sendgate/gate.yaml
#   docker run … sendgate bloombuilder --config /etc/sendgate/gate.yaml
#
# There is no HEALTHCHECK: it would need a program in the image that asks. Let
# what runs the container ask over HTTP: /healthz whether the process lives,
# /readyz whether it may have traffic (503 until it may).

FROM golang:1.26.8-bookworm AS build
WORKDIR /src
ENV CGO_ENABLED=0 GOTOOLCHAIN=local GOFLAGS=-mod=readonly
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=devel
RUN go build -trimpath -ldflags "-s -w -X github.com/sendgate/sendgate/internal/cli.version=${VERSION}" -o /image/usr/local/bin/ ./cmd/gate ./cmd/bloombuilder

# What a program may write to: filters that are published, private copies of
# them, and what Go calls the temporary folder. A volume that is mounted on one
# of these for the first time takes over its owner.
RUN mkdir -p /image/var/lib/sendgate/filters /image/var/cache/sendgate /image/tmp \
 && chown -R 65532:65532 /image/var/lib/sendgate /image/var/cache/sendgate \
 && chmod 1777 /image/tmp

FROM scratch
COPY --from=build /image/ /
# The authorities behind the certificates of S3 and DynamoDB.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
ENV PATH=/usr/local/bin
USER 65532:65532
EXPOSE 8080
STOPSIGNAL SIGTERM
CMD ["gate", "serve", "--config", "/etc/sendgate/gate.yaml"]
