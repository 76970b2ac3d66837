import { orders, startTestGateway } from '../../support/gateway.ts'

export interface CorpusGateway {
  port: number
  close(): Promise<void>
}

/** A gateway with routes of every kind that hostile requests look for. */
export const startCorpusGateway = async ({ upstream }: { upstream: string; tls: boolean }): Promise<CorpusGateway> => {
  const api = { upstream: 'api', methods: [] }
  return startTestGateway({
    config: () => ({
      upstreams: { api: { url: `${upstream}/base` } },
      routes: [
        { ...api, id: 'public', path: '/public/**', auth: 'none', policyHeaders: ['x-tenant'] },
        { ...api, id: 'stripped', path: '/api/v1/**', auth: 'none', stripPrefix: '/api/v1' },
        { ...api, id: 'admin', path: '/admin/**', audience: [orders], scopes: ['admin'] },
        { ...api, id: 'health', path: '/health', auth: 'none' },
        { ...api, id: 'small', path: '/small', auth: 'none', bodySize: 10 },
      ],
      limits: { headerCount: 40, targetLength: 300, headerSize: 8192 },
    }),
  })
}
