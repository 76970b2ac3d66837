import { createServer } from 'node:http'
import { readIdentifier } from '../../issuer/interaction/identifier.ts'
import { findInteraction } from '../../issuer/interaction/interaction-store.ts'
import { listen, runServer } from '../harness/server.ts'
import { type OperationsSettings, openOperations } from './open-operations.ts'

/** `POST /?interaction=…&to=…&ip=…`: somebody at this address asks for a code by mail to sign in with. */
const start = async (settings: OperationsSettings) => {
  const { database, operations, stop } = await openOperations(settings)

  const send = async (asked: URLSearchParams): Promise<string> => {
    const interaction = await findInteraction(database.query, asked.get('interaction') ?? '')
    const identifier = readIdentifier(asked.get('to') ?? '')
    if (!interaction || !identifier) return 'unknown'
    const ip = asked.get('ip') ?? ''
    const origin = { ip, userAgent: 'A browser' }
    const sent = await operations.codes.send(
      interaction,
      {
        ...{ session: undefined, browser: undefined, device: undefined, acceptLanguage: undefined, isEmbedded: false },
        ...{ origin, signInContext: { ip } },
      },
      { purpose: 'sign_in', identifier, locale: 'en', tellsOwner: false },
      { ...origin, method: 'POST', path: '/', matchedRoute: '/', params: {}, status: 204 },
    )
    if (sent.outcome === 'sent') await sent.afterCommit()
    return sent.outcome
  }

  const server = createServer((request, response) => {
    const { searchParams } = new URL(request.url ?? '', 'http://localhost')
    send(searchParams).then(
      (outcome) => response.writeHead(outcome === 'sent' ? 204 : 400).end(outcome === 'sent' ? undefined : outcome),
      (error: Error) => response.writeHead(500).end(error.message),
    )
  })
  return listen(server, stop)
}

runServer(start)
