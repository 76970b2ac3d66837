import { z } from 'zod'

/** What explanations of a decision are made of: rules, routes that nearly fit, what would have allowed it. */

/**
 * A rule that was asked, with whether it held (`+` and `-`) and the line that stood in its way. Of `variables` what the
 * input does not have stands as `[redacted]`.
 */
export const explainedRule = z.object({
  name: z.string(),
  file: z.string(),
  line: z.number(),
  held: z.boolean(),
  stopped: z.object({ line: z.number(), text: z.string() }).optional(),
  variables: z.record(z.string(), z.unknown()),
  times: z.number(),
  get rules() {
    return z.array(explainedRule)
  },
})

/** One thing that keeps a route from taking a request. */
const difference = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('method'), takes: z.array(z.string()).readonly() }),
  z.object({ kind: z.literal('host'), takes: z.array(z.string()).readonly() }),
  /** `route`: whether the route has one at its end, and the request has not. */
  z.object({ kind: z.literal('trailing-slash'), route: z.boolean() }),
  z.object({ kind: z.literal('case'), segment: z.string(), literal: z.string() }),
  z.object({ kind: z.literal('literal'), segment: z.string(), literal: z.string(), distance: z.number() }),
  z.object({ kind: z.literal('more'), segment: z.string() }),
  z.object({ kind: z.literal('less'), literal: z.string().nullable() }),
  z.object({ kind: z.literal('encoded-slash') }),
])

/** A route that does not take the request; `because` goes on after "the route …". The nearest first. */
export const nearMiss = z.object({ route: z.string(), because: z.string(), differences: z.array(difference) })

/** What would have allowed a request; a second evaluation has confirmed each. */
export const remedy = z.discriminatedUnion('change', [
  /** Scopes that the token lacks: all of these together. */
  z.object({ change: z.literal('scope'), scopes: z.array(z.string()) }),
  z.object({ change: z.literal('no-actor') }),
  /** Another route, which takes this similar request. */
  z.object({ change: z.literal('route'), route: z.string(), method: z.string(), host: z.string(), path: z.string() }),
])
export type Remedy = z.output<typeof remedy>

/** Where a request ends, in the order of the pipeline. */
export const stages = ['request', 'route', 'token', 'sign-in', 'rate-limit', 'policy', 'upstream', 'gateway'] as const
