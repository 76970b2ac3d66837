import { setTimeout as delay } from 'node:timers/promises'
import { testClient } from '../support/surrogate-process.ts'
import type { Random } from './random.ts'

const writers = 5
/** Between tries while the issuer is away, in ms. */
const retryMs = 50

export interface Load {
  /** Changes that were answered with success, by path. Others may have been committed too: their answer was lost. */
  confirmed: ReadonlyMap<string, number>
  unanswered: number
  /** Resolves when so many changes are confirmed, or at the deadline. */
  run(events: number, options: { perSecond: number; deadline: number }): Promise<void>
}

export interface Hook {
  name: string
  url: string
  events: readonly string[]
}

/** People and roles who are changed through the Management API, and the hooks that hear of it. */
export const prepareLoad = async (options: {
  url: string
  hooks: readonly Hook[]
  /** How many; one of six is a role. */
  entities: number
  random: Random
}) => {
  const { url, hooks, entities, random } = options
  const token = await managementToken(url)
  const call = async (method: string, path: string, body: unknown) => {
    const response = await fetch(`${url}/api${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(10_000),
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path} → ${response.status} ${text}`)
    return JSON.parse(text) as { id: string }
  }
  for (const { name, url: target, events } of hooks)
    await call('POST', '/hooks', { name, events, config: { url: target } })
  const paths: string[] = []
  for (let index = 0; index < entities; index += 1)
    paths.push(
      index % 6 === 5
        ? `/roles/${(await call('POST', '/roles', { name: `role ${index}`, description: 'first' })).id}`
        : `/users/${(await call('POST', '/users', { username: `user_${index}` })).id}`,
    )

  const confirmed = new Map<string, number>()
  const load: Load = {
    confirmed,
    unanswered: 0,
    async run(events, { perSecond, deadline }) {
      const begun = performance.now()
      let asked = 0
      let done = 0
      const write = async () => {
        while (done < events && performance.now() < deadline) {
          const ahead = begun + (done / perSecond) * 1_000 - performance.now()
          if (ahead > 0) await delay(ahead)
          const path = random.pick(paths)
          asked += 1
          // Never the same twice: a change that changes nothing is none.
          const body = path.startsWith('/users')
            ? { customData: { change: asked } }
            : { description: `change ${asked}` }
          try {
            await call('PATCH', path, body)
            confirmed.set(path, (confirmed.get(path) ?? 0) + 1)
            done += 1
          } catch {
            load.unanswered += 1
            await delay(retryMs)
          }
        }
      }
      await Promise.all(Array.from({ length: writers }, write))
    },
  }
  return load
}

const managementToken = async (url: string): Promise<string> => {
  const answer = await fetch(`${url}/oidc/token`, {
    method: 'POST',
    headers: {
      'content-type': 'application/x-www-form-urlencoded',
      authorization: `Basic ${Buffer.from(`${testClient.id}:${testClient.secret}`).toString('base64')}`,
    },
    body: new URLSearchParams({ grant_type: 'client_credentials', resource: `${url}/api`, scope: 'all' }),
  })
  if (!answer.ok) throw new Error(`No token for the Management API: ${answer.status} ${await answer.text()}`)
  return ((await answer.json()) as { access_token: string }).access_token
}
