import { createRouter, findConflicts, type RouteConflict } from '../routing/router.ts'
import type { GatewayConfig } from './load.ts'
import type { Route } from './route.ts'
import { targetsOf } from './settings/targets.ts'

/** What is valid and probably a mistake, one sentence each; for `surrogate gateway check`. */
export const configWarnings = (config: GatewayConfig): string[] => [
  ...spellings(config),
  ...headRequests(config.routes),
  ...oneServer(config.upstreams),
  ...targetsAlone(config.upstreams),
  ...issuersBehind(config),
]

const everythingIsEqual = { case: 'insensitive', trailingSlash: 'ignore' } as const

/**
 * Two routes to one upstream that differ only in spelling: if the API does not tell them apart, both lead to one
 * handler, and the weaker route guards it.
 */
const spellings = ({ routes, forwardAuth, extAuthz }: GatewayConfig): string[] =>
  [...Map.groupBy(routes, ({ upstream }) => upstream)].flatMap(([upstream, group]) =>
    spelledApart(group).map(({ first, second }) => {
      const [one, other] = [first.pattern.text, second.pattern.text]
      const asker = extAuthz && !forwardAuth ? 'extAuthz' : 'forwardAuth'
      const setting = `${upstream === '' ? asker : `upstreams.${upstream}`}.pathEquality`
      return `the routes ${first.id} (${one}) and ${second.id} (${other}) differ only in spelling: if the API takes both for the same, say so in ${setting} and keep one of them`
    }),
  )

/** Each pair once. A route for any host takes the spellings that one for a named host leaves to it. */
const spelledApart = (routes: readonly Route[]): RouteConflict<Route>[] => {
  const pairs = new Map<string, RouteConflict<Route>>()
  for (const host of [...new Set(routes.flatMap(({ hosts }) => hosts)), undefined]) {
    const taking = routes.filter((route) => takesHost(route, host)).map((route) => ({ ...route, hosts: [] }))
    for (const pair of findConflicts(taking.map((route) => ({ ...route, pathEquality: everythingIsEqual })))) {
      const both = taking.filter(({ id }) => id === pair.first.id || id === pair.second.id)
      if (findConflicts(both).length === 0) pairs.set(both.map(({ id }) => id).join(), pair)
    }
  }
  return [...pairs.values()]
}

const takesHost = ({ hosts }: Route, host: string | undefined): boolean =>
  hosts.length === 0 || (host !== undefined && hosts.some((named) => named === host || host.startsWith(`${named}:`)))

/** Many APIs answer HEAD with the handler of GET, and a route for GET alone leaves HEAD to a less exact one. */
const headRequests = (routes: readonly Route[]): string[] => {
  const router = createRouter(routes)
  return routes.flatMap(({ id, hosts, methods, pattern, upstream }) => {
    if (!methods.includes('GET') || methods.includes('HEAD')) return []
    const found = router.match(
      hosts[0] ?? '',
      'HEAD',
      pattern.segments.map((literal) => literal ?? 'x'),
    )
    if (!found || found.upstream !== upstream || found.pattern.text === pattern.text) return []
    return [
      `HEAD ${pattern.text} is left to the route ${found.id}: if the API answers it as GET, name HEAD in the methods of ${id}`,
    ]
  })
}

const originsOf = (settings: GatewayConfig['upstreams'][string]): string[] => [
  ...new Set(targetsOf(settings).map(({ url }) => new URL(url).origin)),
]

/** What can have no effect. */
const targetsAlone = (upstreams: GatewayConfig['upstreams']): string[] =>
  Object.entries(upstreams).flatMap(([name, settings]) =>
    settings.ejection && !settings.dns && targetsOf(settings).length === 1
      ? [`the upstream ${name} has one target, which is used whatever upstreams.${name}.ejection says`]
      : [],
  )

const oneServer = (upstreams: GatewayConfig['upstreams']): string[] =>
  [
    ...Map.groupBy(
      Object.entries(upstreams).flatMap(([name, settings]) =>
        originsOf(settings).map((origin) => ({ name, origin, equality: JSON.stringify(settings.pathEquality) })),
      ),
      ({ origin }) => origin,
    ).values(),
  ].flatMap((group) => {
    const [first, ...others] = group
    return others.flatMap(({ name, equality }) =>
      first === undefined || equality === first.equality
        ? []
        : [`the upstreams ${first.name} and ${name} are one server, and differ in pathEquality`],
    )
  })

/** Upstreams at the address of an issuer that do not say whether they are the issuer. */
const issuersBehind = ({ upstreams, issuers }: GatewayConfig): string[] => {
  const addresses = issuers.flatMap(({ issuer, jwksUri, tokenEndpoint, revocations }) =>
    [issuer, jwksUri, tokenEndpoint, revocations?.url].flatMap((url) =>
      url === undefined ? [] : [new URL(url).origin],
    ),
  )
  return Object.entries(upstreams).flatMap(([name, settings]) =>
    settings.issuer === undefined && originsOf(settings).some((origin) => addresses.includes(origin))
      ? [
          `the upstream ${name} is at the address of an issuer: its cookies pass with upstreams.${name}.issuer: true only`,
        ]
      : [],
  )
}
