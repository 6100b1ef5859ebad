# syntax=docker/dockerfile:1
# The image of the chart's tokenReconcile job: one Node, one file, no AWS. From the repository's root:
#
#   docker build -f deploy/image/token-reconcile.Dockerfile -t REGISTRY/countersign/token-reconcile:0.1.0 .
#
# Bases by digest for a release, as in Dockerfile beside this one.
ARG BUILD_IMAGE=docker.io/library/node:24-trixie-slim
ARG BASE_IMAGE=gcr.io/distroless/cc-debian13:nonroot

FROM ${BUILD_IMAGE} AS build
WORKDIR /src
COPY package.json package-lock.json .npmrc ./
RUN ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
COPY core core
COPY adapters adapters
COPY cli cli
COPY deploy/bundle.ts deploy/bundle.ts
COPY deploy/image deploy/image
# The build fails if the bundle holds anything except this command.
RUN ["/bin/sh", "-c", "set -eu; node=$(echo node_modules/node-linux-*/bin/node); mkdir /out; cp \"$node\" /out/node; /out/node deploy/image/build.ts --out /out --token-reconcile; /out/node /out/token-reconcile.cjs --help"]

FROM ${BASE_IMAGE}
COPY --from=build --chmod=0555 /out/node /usr/local/bin/node
COPY --from=build --chmod=0444 /out/token-reconcile.cjs /out/licenses.txt /opt/countersign/
COPY --chmod=0444 LICENSE /opt/countersign/LICENSE
USER 65532:65532
WORKDIR /
# As in the relay's image: even an intruder cannot write files or start processes, threads or native code.
ENTRYPOINT ["/usr/local/bin/node", "--permission", "--allow-fs-read=*", "--max-old-space-size=96", "/opt/countersign/token-reconcile.cjs"]
LABEL org.opencontainers.image.title="countersign-token-reconcile" \
      org.opencontainers.image.licenses="Apache-2.0"
