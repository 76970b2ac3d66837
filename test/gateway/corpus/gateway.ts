import { orders, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { createTlsFiles } from '../../support/tls-listener.ts'

/** A gateway with routes of every kind that hostile requests look for. With `tls` it speaks HTTP/2 as well. */
export const startCorpusGateway = async (options: {
  /** Default: the upstream of the test gateway. */
  upstream?: string
  tls: boolean
  /** Of the upstream. */
  idleTimeout?: string
  limits?: Record<string, unknown>
}): Promise<TestGateway> => {
  const { tls, limits, idleTimeout } = options
  const files = createTlsFiles()
  const api = { upstream: 'api', methods: [] }
  const gateway = await startTestGateway({
    config: ({ upstream }) => ({
      listen: { port: 0, ...(tls && { tls: { certificates: [files.pair('api.test')] } }) },
      upstreams: {
        api: { url: `${options.upstream ?? upstream.url}/base`, ...(idleTimeout !== undefined && { idleTimeout }) },
      },
      routes: [
        { ...api, id: 'public', path: '/public/**', auth: 'none', policyHeaders: ['x-tenant'] },
        { ...api, id: 'stripped', path: '/api/v1/**', auth: 'none', stripPrefix: '/api/v1' },
        { ...api, id: 'admin', path: '/admin/**', audience: [orders], scopes: ['admin'] },
        { ...api, id: 'health', path: '/health', auth: 'none' },
        { ...api, id: 'small', path: '/small', auth: 'none', bodySize: 10 },
      ],
      limits: { headerCount: 40, targetLength: 300, headerSize: 8192, ...limits },
    }),
  })
  return {
    ...gateway,
    async close() {
      await gateway.close()
      files.remove()
    },
  }
}
