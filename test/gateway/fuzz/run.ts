import { connect } from 'node:net'
import type { PolicyInput } from '../../../policies/decide.ts'
import { orders, startTestGateway } from '../../support/gateway.ts'
import { recordingPolicies } from '../../support/recording-policies.ts'
import { type StrictRequest, startStrictUpstream } from '../../support/strict-upstream.ts'
import { type Conversation, generate } from './generate.ts'
import { differences, policyHeaders } from './invariants.ts'
import { createRandom } from './random.ts'

export interface FuzzOptions {
  seed: number
  /** Stops after this many conversations, or when `until` says so. */
  conversations: number
  until?: () => boolean
  /** Conversations at the same time. */
  parallel?: number
}

export interface FuzzResult {
  conversations: number
  /** Requests that went upstream. */
  forwarded: number
  /** By status. */
  answers: Record<string, number>
  /** Each with what is needed to repeat it. None is wanted. */
  failures: string[]
}

/** Longer than every timeout of the gateway below: a connection that is still open then is an idle one. In ms. */
const idleAfter = 1_500
/** One that does not even end when its client has ended it hangs. In ms. */
const patience = 6_000

const readStatuses = (text: string) => [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => status!)

const converse = ({ text, cuts }: Conversation, port: number): Promise<{ received: string; hung: boolean }> =>
  new Promise((resolve) => {
    let received = ''
    let hung = false
    const socket = connect(port, '127.0.0.1')
    const timer = setTimeout(() => {
      hung = true
      socket.destroy()
    }, patience)
    // Its last request may have been taken for the body of another one.
    const idle = setTimeout(() => socket.end(), idleAfter)
    socket.on('data', (chunk) => (received += chunk.toString('latin1')))
    socket.on('error', () => {})
    socket.on('close', () => {
      clearTimeout(timer)
      clearTimeout(idle)
      resolve({ received, hung })
    })
    const pieces = [...cuts, text.length].map((end, index) => text.slice(index === 0 ? 0 : cuts[index - 1], end))
    const writeNext = () => {
      const piece = pieces.shift()
      if (piece === undefined || socket.destroyed) return
      socket.write(piece, 'latin1', () => setImmediate(writeNext))
    }
    socket.on('connect', writeNext)
  })

/**
 * Sends seeded conversations, well-formed and broken ones, through a gateway with the shipped policies and tokens of a
 * real issuer, before an upstream that reads bytes strictly. What must hold: the upstream sees the request that the
 * policy allowed, once, and nothing else.
 */
export const fuzz = async ({ seed, conversations, until, parallel = 16 }: FuzzOptions): Promise<FuzzResult> => {
  const upstream = await startStrictUpstream()
  const allowed = new Map<string, PolicyInput>()
  const route = { upstream: 'api', policyHeaders, methods: [] }
  const gateway = await startTestGateway({
    policies: await recordingPolicies((input, result) => {
      if (result === true || (result as { allow?: unknown })?.allow === true) allowed.set(input.request.id, input)
    }),
    config: ({ issuer }) => ({
      issuers: [{ issuer: issuer.issuer }],
      upstreams: { api: { url: upstream.url } },
      routes: [
        { ...route, id: 'open', path: '/open/**', auth: 'none', matrixParameters: 'keep' },
        { ...route, id: 'json', path: '/json/**', auth: 'none', policyBody: { type: 'json', maxBytes: 200 } },
        { ...route, id: 'kept', path: '/kept/**', auth: 'none', encodedSlash: 'keep' },
        { ...route, id: 'orders', path: '/orders/**', audience: [orders], scopes: ['read'] },
        { ...route, id: 'admin', path: '/admin/**', audience: [orders], scopes: ['admin'] },
      ],
      limits: { headersTimeout: '300ms', requestTimeout: '400ms' },
    }),
  })
  const token = await gateway.issuer.sign({ sub: 'user-1', scope: 'read', exp: Math.floor(Date.now() / 1000) + 86_400 })
  const random = createRandom(seed)
  const failures: string[] = []
  const answers: Record<string, number> = {}
  let done = 0
  let forwarded = 0

  const report = (what: string, text?: string) => {
    if (failures.length < 20) failures.push(text === undefined ? what : `${what}\n  sent: ${JSON.stringify(text)}`)
  }

  /** Everything that went upstream since the last look was decided on, once, and is what was decided on. */
  const settle = (sent: readonly Conversation[]) => {
    const texts = () => sent.map(({ text }) => text).join('\n  or: ')
    for (const seen of upstream.seen.splice(0)) {
      forwarded++
      const ids = seen.fields.filter(([name]) => name === 'x-request-id').map(([, value]) => value)
      const input = ids.length === 1 ? allowed.get(ids[0]!) : undefined
      if (input) {
        allowed.delete(ids[0]!)
        for (const difference of differences(seen, input)) report(difference, texts())
      } else report(`a request that nobody decided on, or a second time: ${seen.method} ${seen.target}`, texts())
    }
    for (const violation of upstream.violations.splice(0)) report(`malformed upstream: ${violation}`, texts())
    allowed.clear()
  }

  try {
    while (done < conversations && !until?.()) {
      const batch = Array.from({ length: Math.min(parallel, conversations - done) }, () => generate(random, token))
      // One at a time where the upstream's order is part of what is wanted.
      for (const conversation of batch.filter(({ wanted }) => wanted)) {
        const { received, hung } = await converse(conversation, gateway.port)
        if (hung) report('the connection hangs', conversation.text)
        const essence = ({ method, target, body }: StrictRequest) => ({ method, target, body })
        const [seen, wanted] = [JSON.stringify(upstream.seen.map(essence)), JSON.stringify(conversation.wanted)]
        if (seen !== wanted) report(`the upstream saw ${seen}\n  wanted: ${wanted}`, conversation.text)
        for (const status of readStatuses(received)) answers[status] = (answers[status] ?? 0) + 1
        settle([conversation])
      }
      const odd = batch.filter(({ wanted }) => !wanted)
      const outcomes = await Promise.all(odd.map((conversation) => converse(conversation, gateway.port)))
      for (const [index, { received, hung }] of outcomes.entries()) {
        if (hung) report('the connection hangs', odd[index]!.text)
        for (const status of readStatuses(received)) answers[status] = (answers[status] ?? 0) + 1
        // A damaged token may name a key that nobody knows.
        if (/HTTP\/1\.1 5(?!03)/.test(received)) report(`the gateway failed: ${received}`, odd[index]!.text)
      }
      settle(odd)
      done += batch.length
    }
  } finally {
    await gateway.close()
    await upstream.close()
  }
  return { conversations: done, forwarded, answers, failures }
}
