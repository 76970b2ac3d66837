import { z } from 'zod'
import { address, tls } from './listen.ts'
import { pathEquality } from './values.ts'

/** `extAuthz:`, where Envoy asks. */
export const extAuthz = z.strictObject({
  ...address(9191),
  tls: tls.optional().describe('Certificates: Envoy connects by TLS. Their files are followed.'),
  pathEquality: pathEquality
    .prefault({})
    .describe('Which spellings of a path the API behind Envoy takes for the same; for routes without upstream.'),
})

export type ExtAuthzSettings = z.output<typeof extAuthz>
