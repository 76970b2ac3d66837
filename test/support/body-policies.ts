import { onTestFinished } from 'vitest'
import { ruleFolder } from '../policies/rule-folder.ts'
import { capturedLogger } from './captured-logger.ts'
import { orders, startTestGateway, type TestGateway, type TestUpstream } from './gateway.ts'

/** Up to 100 is allowed, and the upstream is told what was seen; without a body nothing is asked of it. */
export const amountRules = `package app

# METADATA
# entrypoint: true
decision := {"allow": true, "headers": {"x-amount": sprintf("%v", [input.request.body.amount])}} if {
	input.request.body.amount <= 100
} else := {"allow": true, "headers": {"x-amount": "none"}} if {
	not "body" in object.keys(input.request)
} else := {"allow": false, "reason": "too_much"}
`

/**
 * A gateway whose rules see the bodies of `/payments`. `route` and the members of the file are added to, or replaced.
 */
export const startBodyGateway = async ({
  route = {},
  config = () => ({}),
  rules = amountRules,
}: {
  route?: object
  config?: (upstream: TestUpstream) => object
  rules?: string
} = {}): Promise<TestGateway & { held(): Promise<number>; lines: Record<string, unknown>[] }> => {
  const path = await ruleFolder({ 'app.rego': rules })
  const { logger, lines } = capturedLogger()
  const gateway = await startTestGateway({
    logger,
    config: ({ upstream }) => ({
      policies: { path },
      upstreams: { api: { url: upstream.url } },
      routes: [
        {
          id: 'payments',
          path: '/payments',
          audience: [orders],
          upstream: 'api',
          entrypoint: 'app/decision',
          policyBody: { type: 'json' },
          ...route,
        },
      ],
      ...config(upstream),
    }),
  })
  onTestFinished(gateway.close)
  return {
    ...gateway,
    lines,
    /** Bytes of bodies that are held now. */
    held: async () => {
      const { text } = await gateway.metrics.render()
      return Number(/^surrogate_gateway_held_body_bytes (\d+)$/m.exec(text)?.[1] ?? 0)
    },
  }
}

export const json = { 'content-type': 'application/json' }

/** The head of a POST as HTTP/1.1 has it, up to its body. */
export const postHead = (token: string, ...fields: readonly string[]): string =>
  [
    'POST /payments HTTP/1.1',
    'Host: a',
    `Authorization: Bearer ${token}`,
    'Content-Type: application/json',
    ...fields,
    '',
    '',
  ].join('\r\n')
