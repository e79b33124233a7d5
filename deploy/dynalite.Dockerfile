# dynalite, which stands in for DynamoDB where there is none: for trying out
# and for tests. Built from the root of the repository, with the versions that
# the tests use.
#
#   docker build -f deploy/dynalite.Dockerfile .

FROM node:22.22.2-bookworm-slim
WORKDIR /srv
COPY tools/package.json tools/package-lock.json tools/.npmrc ./
# No package's own scripts are needed: what is native is in the packages.
RUN npm ci --ignore-scripts --no-audit --no-fund && npm cache clean --force
COPY deploy/dynalite.js ./
RUN mkdir /data && chown 1000:1000 /data
ENV NODE_ENV=production
USER 1000:1000
EXPOSE 8000
VOLUME /data
HEALTHCHECK --interval=5s --timeout=3s --start-period=10s --retries=5 \
  CMD ["node", "-e", "fetch('http://127.0.0.1:8000/').then(a => process.exit(a.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "dynalite.js", "/data", "0.0.0.0:8000"]
