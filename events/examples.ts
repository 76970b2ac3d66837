import { eventTypes } from './catalogue.ts'
import { apiVersion } from './outbox.ts'
import { examples } from './records.ts'

/** The id that `:name` of a route stands for. */
const paramsOf = (route: string, id: string): Record<string, string> =>
  Object.fromEntries(
    [...route.matchAll(/:(\w+)/g)].map(([, name]) => [name, name === 'resourceId' ? examples.scope.resourceId : id]),
  )

/**
 * The bytes of a made-up event, as `recordEvent` would store them, with `test: true`: what a test-send delivers. Throws
 * TypeError for an unknown type.
 */
export const testPayload = (
  type: string,
  { id, correlationId, createdAt }: { id: string; correlationId: string; createdAt: Date },
): Buffer => {
  const known = eventTypes.get(type)
  if (known === undefined) throw new TypeError(`Not an event type: ${type}`)
  const { cause, data, extras, status = 200 } = known.example
  const [method, matchedRoute = ''] = cause.split(' ')
  const params = paramsOf(matchedRoute, examples[known.entity].id)
  const payload = {
    id,
    event: type,
    version: 1,
    test: true,
    apiVersion,
    correlationId,
    createdAt: createdAt.toISOString(),
    ...(known.entity === 'organization' && { organizationId: examples.organization.id }),
    userAgent: 'Surrogate-Test',
    ip: '203.0.113.7',
    path: matchedRoute.replace(/:(\w+)/g, (_, name: string) => params[name] ?? ''),
    method,
    status,
    params,
    matchedRoute,
    data,
    ...extras,
  }
  return Buffer.from(JSON.stringify(payload))
}
