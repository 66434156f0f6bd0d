# syntax=docker/dockerfile:1
# Both images by build argument, so that the same file builds from a public registry and from a mirror or a local base.
# BUILD_IMAGE needs Node 22.19 or later with npm; RUNTIME_IMAGE needs `node` on its path and nothing else.
ARG BUILD_IMAGE=node:24-bookworm-slim
ARG RUNTIME_IMAGE=gcr.io/distroless/nodejs24-debian12:nonroot
ARG NODE_BINARY=/nodejs/bin/node

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
RUN npm run build && npm prune --omit=dev

FROM ${RUNTIME_IMAGE}
ARG NODE_BINARY
WORKDIR /app
COPY --from=build /app/dist ./
COPY --from=build /app/node_modules node_modules
ENV NODE_ENV=production
# By number, so that runAsNonRoot can be checked.
USER 65532:65532
EXPOSE 8443 8080
ENTRYPOINT ["node", "/app/src/main.js"]
CMD ["serve"]
