# What each target is for: `make help`.
SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
CHAOS := go test -count=1 -timeout 60m ./chaos
E2E := go test -count=1 -timeout 20m ./e2e
LINT := go tool -modfile=tools/go.mod golangci-lint
CLI := github.com/sendgate/sendgate/internal/cli

.PHONY: help build test e2e chaos storm fullsize engines lint fuzz bench bench-full microbench

help: ## list the targets
	@sed -nE 's/^([a-z0-9-]+):.*## (.*)/  make \1\t\2/p' Makefile | expand -t 18

build: ## build the gate and the builder into bin/
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w -X $(CLI).version=$(VERSION)' -o bin/ ./cmd/gate ./cmd/bloombuilder

test: engines ## run every test, with the race detector, on real engines
	go test -race -shuffle=on -timeout 20m $$(go list ./... | grep -vE '/(e2e|chaos)$$')
	go test -race -timeout 20m ./e2e
	go test -shuffle=on -run '^TestHistories$$' ./internal/oracle
	go test -run Allocate ./bloom
	go -C deploy test -shuffle=on ./...
	go -C bench test -shuffle=on ./...
	$(E2E)
	$(CHAOS)

e2e: engines ## run two gates, a builder and the engines as processes, against the oracle
	$(E2E) -v

CHAOSFLAGS ?=

chaos: engines ## bring about faults while people change their minds; CHAOSFLAGS=-chaos.long takes long
	$(CHAOS) -v $(CHAOSFLAGS)

storm: engines ## measure how changes get through: eight gates, and as many changes as the machine takes
	go test -run '^$$' -bench . -timeout 30m ./storm

FULLFLAGS ?= -full.keys 2e9 -full.memory 4500000000 -full.build-memory 536870912 -full.for 10s

fullsize: ## go the whole way of a filter of 2 billion opt-outs; takes 9 GB of memory and 19 GB of TMPDIR
	go test -count=1 -timeout 3h -run '^TestFullSize$$' -v ./rebuild $(FULLFLAGS)

engines: ## install the engines that the tests start (redis-server, dynalite), where they are missing
	@tools/engines.sh

lint: ## run the linters, and check that go.mod is tidy
	go vet ./...
	go mod tidy -diff
	go -C deploy vet ./...
	go -C deploy mod tidy -diff
	go -C bench vet ./...
	go -C bench mod tidy -diff
	$(LINT) run ./...

FUZZTIME ?= 30s

fuzz: ## run every fuzz target for FUZZTIME each
	@for package in $$(go list ./...); do \
	  for target in $$(go test -list '^Fuzz' $$package | grep '^Fuzz' || true); do \
	    echo "$$package $$target"; \
	    go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$package; \
	  done; \
	done

LOAD := go -C bench test -count=1 -run '^$$' -v . -bench

bench: engines ## put load on a gate for some minutes, and write docs/performance
	$(LOAD) '^BenchmarkLoad$$/^short$$' -timeout 30m

bench-full: engines ## the same with 10 million users and 100 million opt-outs: an hour, and 8 GB of memory
	$(LOAD) '^BenchmarkLoad$$/^full$$' -timeout 3h

microbench: ## run the benchmarks beside the code
	go test -run '^$$' -bench . -benchmem $$(go list ./... | grep -v /storm$$)
