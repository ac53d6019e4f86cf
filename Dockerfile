# The coordinator as an image. docs/how-to/run-in-containers.md has the commands. The build
# downloads packages, so it needs the network. The finished image needs none but that of its store.

# The tests pass on Node 20 and later. The image has a later one, because 20 gets no more security
# fixes.
ARG NODE_VERSION=24

FROM node:${NODE_VERSION}-slim AS build
WORKDIR /src
COPY . .
# The command as it is published: one package with all that it needs.
RUN npm run --silent pack -- /tarballs && mkdir /app && tar -xzf /tarballs/callnumber-[0-9]*.tgz -C /app --strip-components=1

FROM node:${NODE_VERSION}-slim
ENV NODE_ENV=production \
    CALLNUMBER_STORE=sqlite:/var/lib/callnumber/store.db \
    CALLNUMBER_CHECKPOINT_DIR=/var/lib/callnumber-checkpoints
COPY --from=build /app /app
# A named volume that you mount here gets the owner of its directory. The user owns nothing else in
# the image, so that you can mount the root file system read-only.
RUN install --directory --owner=node --group=node /var/lib/callnumber /var/lib/callnumber-checkpoints
USER node
EXPOSE 7300
# Checked with Node, because the image has no curl. With TLS, the check accepts any certificate,
# since it connects to its own container. If you require certificates of clients, replace this
# check.
HEALTHCHECK --interval=5s --timeout=3s --start-period=10s --retries=3 \
  CMD ["node", "-e", "require(process.env.CALLNUMBER_TLS_CERTIFICATE ? 'https' : 'http').get({ host: '127.0.0.1', port: process.env.CALLNUMBER_PORT || 7300, path: '/healthz', rejectUnauthorized: false }, ({ statusCode }) => process.exit(statusCode === 200 ? 0 : 1)).on('error', () => process.exit(1))"]
ENTRYPOINT ["node", "/app/bin/callnumber.js"]
CMD ["serve"]
