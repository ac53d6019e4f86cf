# The coordinator, as `docker-compose.yml` runs it. The build fetches packages; the image needs no network but its store.

# The tests hold on Node 20 and later. 20 itself gets no more security fixes, so the image carries a line that does.
ARG NODE_VERSION=24

FROM node:${NODE_VERSION}-slim AS build
WORKDIR /src
COPY . .
RUN npm run --silent bootstrap
# The command alone, in the versions of the lock file, all of which were fetched just now. Its neighbors in the workspace
# are copied in and not linked (that is the setting), since only a copy finds zod where the coordinator has it.
RUN npx --yes "$(node -p 'require("./package.json").packageManager.split("+")[0]')" \
    --config.inject-workspace-packages=true --filter callnumber deploy --prod --offline /app

FROM node:${NODE_VERSION}-slim
ENV NODE_ENV=production
WORKDIR /app
COPY --from=build /app .
# A volume that is put there gets the owner of this folder. Nothing else in the image belongs to this user: it runs as well with
# a read-only file system.
RUN install --directory --owner=node --group=node /var/lib/callnumber-checkpoints
USER node
EXPOSE 7300
# The image has no curl, and needs none. With TLS it believes the certificate of itself, whatever name that is for; one that lets in only
# callers with a certificate needs a check of its own.
HEALTHCHECK --interval=5s --timeout=3s --start-period=10s --retries=3 \
  CMD ["node", "-e", "require(process.env.CALLNUMBER_TLS_CERTIFICATE ? 'https' : 'http').get({ host: '127.0.0.1', port: process.env.CALLNUMBER_PORT || 7300, path: '/healthz', rejectUnauthorized: false }, ({ statusCode }) => process.exit(statusCode === 200 ? 0 : 1)).on('error', () => process.exit(1))"]
ENTRYPOINT ["node", "/app/bin/callnumber.js"]
CMD ["serve"]
