import type { IncomingMessage, ServerResponse } from 'node:http'
import type { CheckedRequest } from '../request/checked-request.ts'
import { newRequestContext, type RequestContext } from '../request/request-context.ts'
import type { CheckAnswer } from './check-answer.ts'
import { structValueOf, type Value } from './messages.ts'

/** A check on its way through the pipeline. */
export const checkContext = (request: CheckedRequest, answer: CheckAnswer): RequestContext => {
  const [incoming, response] = [request as unknown as IncomingMessage, answer as unknown as ServerResponse]
  const context = newRequestContext(incoming, response, '', undefined, undefined, request)
  // By its name: V8 takes a function that is written where it is assigned to a property for one that stays, and what it
  // holds on to is copied from collection to collection.
  const metadata = () => metadataOf(context)
  answer.metadata = metadata
  return context
}

/** For the next filters and the access log of Envoy: who asks, and what was decided. Nothing of a token itself. */
const metadataOf = ({ id, route, principal, decision, error }: RequestContext): Record<string, Value> => {
  const { subject, actor, client, organization, token } = principal?.input ?? {}
  const reason = (error?.data as { reason?: string } | undefined)?.reason ?? error?.code
  const members: Record<string, unknown> = {
    request_id: id,
    route: route?.id,
    subject: subject?.id,
    actor: actor?.id,
    actor_chain: actor?.chain,
    client_id: client?.id,
    organization_id: organization?.id,
    scopes: token?.scopes,
    reason,
    log: decision?.log,
  }
  const fields: Record<string, Value> = {}
  for (const name in members) if (members[name] !== undefined) fields[name] = structValueOf(members[name])
  return fields
}
