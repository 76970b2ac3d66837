import { expect, onTestFinished, test } from 'vitest'
import { createPersonalAccessTokens } from '../../../gateway/caller/personal-access-tokens.ts'
import { followRevocations } from '../../../gateway/caller/revocation-reader.ts'
import type { LogReport } from '../../../gateway/logs/output.ts'
import { createLogUpload } from '../../../gateway/logs/upload.ts'
import { systemClock } from '../../../platform/clock.ts'
import { fetchJson } from '../../../platform/jwt/fetch-json.ts'
import { createMetrics } from '../../../platform/metrics.ts'
import { Secret } from '../../../platform/secret.ts'
import { bundleDownload } from '../../../policies/bundle-download.ts'
import { pour, startRawReceiver } from '../../support/raw-receiver.ts'

/** A server that the gateway asks sends without end: the gateway gives up long before the time is up. */

const client = { id: 'gateway', secret: new Secret('s3cret') }
const metrics = createMetrics()

/** Who asks a URL once, and resolves when that is over. */
const readers: Record<string, (url: string) => Promise<unknown>> = {
  'the keys of an issuer': async (url) => {
    const fetcher = fetchJson()
    onTestFinished(() => fetcher.close())
    return fetcher.get(url).catch(() => {})
  },
  'a bundle of policies': async (url) => {
    const download = bundleDownload({ url })
    onTestFinished(() => download.close())
    return download.next().catch(() => {})
  },
  'a revocation feed': async (url) => {
    const failed = Promise.withResolvers<string>()
    const reader = followRevocations({ url, client, waitSeconds: 0, onPage: () => {}, onFailure: failed.resolve })
    onTestFinished(() => reader.close())
    return failed.promise
  },
  'the exchange of a personal access token': async (url) => {
    const tokens = createPersonalAccessTokens({ tokenEndpoint: url, client, metrics, now: systemClock })
    onTestFinished(() => tokens.close())
    return Promise.resolve(tokens.exchange('pat_0123456789abcdef', 'https://api.test', '')).catch(() => {})
  },
  'a collector of logs': async (url) => {
    const done = Promise.withResolvers<unknown>()
    const report: LogReport = { dropped() {}, recovered: () => done.resolve(undefined), failed: done.resolve }
    const settings = { to: url, bufferSize: 1_048_576, http: { batchSize: 262_144, interval: 1 } }
    const log = createLogUpload({ name: 'decision', settings, metrics, report })
    onTestFinished(() => log.close())
    log.write('{}')
    return done.promise
  },
}

test.each(Object.keys(readers))('%s', async (name) => {
  // More than the largest of them, a bundle, may take, with the buffers of two sockets.
  const most = 128 * 1_048_576
  const gone = Promise.withResolvers<number>()
  const receiver = await startRawReceiver((socket) => {
    socket.on('close', () => gone.resolve(socket.bytesWritten))
    socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2;x=')
    pour(socket, 'y', most)
  })
  onTestFinished(() => receiver.close())
  await readers[name]!(receiver.url)
  expect(await gone.promise).toBeLessThan(most)
})
