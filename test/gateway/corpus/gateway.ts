import { writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { stringify } from 'yaml'
import { freePort } from '../../support/free-port.ts'
import { orders, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { startProcess } from '../../support/process.ts'
import { createTlsFiles } from '../../support/tls-listener.ts'
import { startTokenIssuer } from '../../support/token-issuer.ts'

interface CorpusOptions {
  tls: boolean
  /** Of the upstream. */
  idleTimeout?: string
  limits?: Record<string, unknown>
}

/** Routes of every kind that hostile requests look for. */
const corpusFile = (upstream: string, files: TlsFiles, { tls, idleTimeout, limits }: CorpusOptions) => {
  const api = { upstream: 'api', methods: [] }
  return {
    listen: { port: 0, ...(tls && { tls: { certificates: [files.pair('api.test')] } }) },
    upstreams: { api: { url: `${upstream}/base`, ...(idleTimeout !== undefined && { idleTimeout }) } },
    routes: [
      { ...api, id: 'public', path: '/public/**', auth: 'none', policyHeaders: ['x-tenant'] },
      { ...api, id: 'stripped', path: '/api/v1/**', auth: 'none', stripPrefix: '/api/v1' },
      { ...api, id: 'admin', path: '/admin/**', audience: [orders], scopes: ['admin'] },
      { ...api, id: 'health', path: '/health', auth: 'none' },
      { ...api, id: 'json', path: '/json', auth: 'none', policyBody: { type: 'json', maxBytes: 1024 } },
      { ...api, id: 'small', path: '/small', auth: 'none', bodySize: 10 },
    ],
    limits: { headerCount: 40, targetLength: 300, headerSize: 8192, ...limits },
  }
}
type TlsFiles = ReturnType<typeof createTlsFiles>

/** A gateway in this process. With `tls` it speaks HTTP/2 as well. */
export const startCorpusGateway = async (
  options: CorpusOptions & {
    /** Default: the upstream of the test gateway. */
    upstream?: string
  },
): Promise<TestGateway> => {
  const files = createTlsFiles()
  const gateway = await startTestGateway({
    config: ({ upstream }) => corpusFile(options.upstream ?? upstream.url, files, options),
  })
  return {
    ...gateway,
    async close() {
      await gateway.close()
      files.remove()
    },
  }
}

const surrogate = fileURLToPath(new URL('../../../bin/surrogate.ts', import.meta.url))

/** The same as processes of the command line. */
export const startCorpusProcesses = async (options: CorpusOptions & { upstream: string; workers: number }) => {
  const files = createTlsFiles()
  const issuer = await startTokenIssuer()
  const path = files.path('gateway.yaml')
  const file = {
    version: 1,
    workers: options.workers,
    admin: { port: await freePort() },
    allowInsecure: ['http-issuer', 'no-revocations'],
    issuers: [{ issuer: issuer.issuer }],
    ...corpusFile(options.upstream, files, options),
  }
  await writeFile(path, stringify(file))
  const child = startProcess(process.execPath, [surrogate, 'gateway', '--config', path], { cwd: files.path('.') })
  const close = async () => {
    child.signalGroup('SIGKILL')
    await child.exited
    await issuer.close()
    files.remove()
  }
  try {
    const [, port] = await child.waitFor(/"url":"https?:[^"]+:(\d+)"[^\n]*the gateway listens/)
    return { port: Number(port), close }
  } catch (error) {
    await close()
    throw error
  }
}
