import { createServer } from 'node:http'
import { request } from 'undici'
import { stringify } from 'yaml'
import { createAuthorize } from '../../gateway/authorize/authorize.ts'
import { createAuthenticate } from '../../gateway/caller/authenticate.ts'
import { createGateway, parseGatewayConfig } from '../../gateway/main.ts'
import type { StageParts } from '../../gateway/pipeline.ts'
import { createReadRequest } from '../../gateway/request/canonical-request.ts'
import { createMatchRoute } from '../../gateway/request/match-route.ts'
import { answered, type RoutedRequest, type Stage } from '../../gateway/request/request-context.ts'
import { createLogger } from '../../platform/logger.ts'
import { answerCalls, ownCpuMicros } from '../harness/calls.ts'
import { type GatewayFileSettings, gatewayFile } from '../harness/gateway-file.ts'
import { listen } from '../harness/server.ts'

/**
 * What the gateway itself takes to decide, without reading, forwarding or answering HTTP: the token of a request that
 * was read and routed is looked up among the verified ones, and the policy is asked.
 */
let decide: (times: number) => number

answerCalls({
  start: async ({ token, ...settings }: GatewayFileSettings & { token: string }) => {
    const { authenticate, authorize, context } = await readOneRequest(settings, token)
    decide = (times) => {
      const before = ownCpuMicros()
      for (let left = times; left > 0; left--) {
        context.principal = undefined
        context.decision = undefined
        if (authenticate(context) || authorize(context)) throw new Error('the gateway waits')
        if ((context as RoutedRequest).decision?.allow !== true) throw new Error('the gateway refused')
      }
      return (ownCpuMicros() - before) / times
    }
  },
  decide: (times: number) => decide(times),
})

/** Through the gateway's own stages, over HTTP. */
const readOneRequest = async (settings: GatewayFileSettings, token: string) => {
  let parts: StageParts | undefined
  let context: RoutedRequest | undefined
  const answer: Stage = (passed) => {
    context = passed as RoutedRequest
    passed.response.end()
    return answered
  }
  const gateway = await createGateway({
    config: parseGatewayConfig(stringify(gatewayFile(settings)), { file: 'gateway.yaml', env: {} }),
    logger: createLogger({ name: 'gateway', level: 'warn' }),
    stages(given) {
      parts = given
      const stages = [
        createReadRequest(given),
        createMatchRoute(given),
        createAuthenticate(given),
        createAuthorize(given),
      ]
      return [...(stages as Stage[]), answer]
    },
  })
  await gateway.ready
  const server = await listen(createServer(gateway.handler))
  const { statusCode } = await request(`http://127.0.0.1:${server.port}/orders/42?expand=items`, {
    headers: { authorization: `Bearer ${token}`, accept: 'application/json', 'accept-language': 'de' },
  })
  await server.stop()
  if (statusCode !== 200 || !parts || !context) throw new Error(`the gateway answered ${statusCode}`)
  return { authenticate: createAuthenticate(parts), authorize: createAuthorize(parts), context }
}
