# syntax=docker/dockerfile:1
# Both base images are build arguments, so that the same file builds from a public registry, a mirror or a local base:
# BUILD_IMAGE needs Node 20 or later with npm; RUNTIME_IMAGE needs glibc, libstdc++ and CA certificates, and no Node:
# the pinned one comes with the dependencies.
ARG BUILD_IMAGE=docker.io/library/node:24-bookworm-slim
ARG RUNTIME_IMAGE=gcr.io/distroless/cc-debian12:nonroot

FROM ${BUILD_IMAGE} AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci
COPY tsconfig.json tsconfig.build.json ./
COPY src src
COPY webhooks webhooks
COPY certs certs
COPY devcluster devcluster
COPY manifests manifests
RUN npm run build \
 && cp -L node_modules/.bin/node /usr/local/bin/sandgate-node \
 && npm prune --omit=dev --ignore-scripts

FROM ${RUNTIME_IMAGE}
WORKDIR /app
COPY --from=build /usr/local/bin/sandgate-node /usr/local/bin/node
COPY --from=build /app/dist ./
COPY --from=build /app/node_modules node_modules
ENV NODE_ENV=production
# By number, so that the kubelet can check runAsNonRoot.
USER 65532:65532
EXPOSE 8443 8080
ENTRYPOINT ["/usr/local/bin/node", "/app/src/main.js"]
CMD ["serve"]
