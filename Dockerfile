# The coordinator, as `docker-compose.yml` runs it. The build fetches packages; the image needs no network but its store.

# The tests hold on Node 20 and later. 20 itself gets no more security fixes, so the image carries a line that does.
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
# A volume that is put there gets the owner of its folder. Nothing else in the image belongs to this user: it runs as well with a
# read-only file system.
RUN install --directory --owner=node --group=node /var/lib/callnumber /var/lib/callnumber-checkpoints
USER node
EXPOSE 7300
# The image has no curl, and needs none. With TLS it believes the certificate of itself, whatever name that is for; one that lets in only
# callers with a certificate needs a check of its own.
HEALTHCHECK --interval=5s --timeout=3s --start-period=10s --retries=3 \
  CMD ["node", "-e", "require(process.env.CALLNUMBER_TLS_CERTIFICATE ? 'https' : 'http').get({ host: '127.0.0.1', port: process.env.CALLNUMBER_PORT || 7300, path: '/healthz', rejectUnauthorized: false }, ({ statusCode }) => process.exit(statusCode === 200 ? 0 : 1)).on('error', () => process.exit(1))"]
ENTRYPOINT ["node", "/app/bin/callnumber.js"]
CMD ["serve"]
