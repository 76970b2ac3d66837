import { isIP, isIPv6 } from 'node:net'
import { z } from 'zod'
import { duration, httpUrl, share } from './values.ts'

/** The rows of `upstreams:` about what answers: which servers, which of them is asked, and when one is left out. */

const label = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, 'must be letters, digits, dots, dashes, at most 64')

const target = z.strictObject({
  url: httpUrl.describe('As `url`.'),
  weight: z.number().int().min(1).max(1_000).default(1).describe('Its share of the requests, against the others.'),
  labels: z.record(label, label).default({}).describe('What routes may ask for, such as `track: canary`.'),
})

/** `10.0.0.53`, `10.0.0.53:5353`, `[fd00::53]:5353`, `fd00::53`. */
const isDnsServer = (text: string): boolean => {
  if (isIP(text) > 0) return true
  const [, bracketed, plain, port] = /^(?:\[([^\]]+)\]|([\d.]+)):(\d{1,5})$/.exec(text) ?? []
  const isAddress = bracketed === undefined ? isIP(plain ?? '') === 4 : isIPv6(bracketed)
  return isAddress && Number(port) >= 1 && Number(port) <= 65_535
}

const dns = z.strictObject({
  refresh: duration(1_000, 3_600_000)
    .prefault('30s')
    .describe('A name is asked for again when its answer has expired (its TTL, at least 1 s), and after this long.'),
  servers: z
    .array(z.string().refine(isDnsServer, 'must be an address with an optional port, such as 10.0.0.53:5353'))
    .min(1)
    .optional()
    .describe('Name servers to ask. Default: those of the system, and where they do not know a name its `hosts` file.'),
  family: z
    .enum(['any', 'ipv4', 'ipv6'])
    .default('any')
    .describe('Which addresses count. `any`: IPv6 only where this machine has it, or the name has no others.'),
})

const health = z
  .strictObject({
    path: z
      .string()
      .regex(/^\/[\x21-\x22\x24-\x7e]*$/, 'must be a path, with an optional query')
      .describe('Asked with GET; from the root of the server.'),
    interval: duration(100, 3_600_000).prefault('5s').describe('Between two checks, a tenth more or less at random.'),
    timeout: duration(1, 600_000)
      .optional()
      .describe(
        'Until the head of the answer, connection included. Default: `2s`, or the interval if that is shorter.',
      ),
    healthyAfter: z.number().int().min(1).max(100).default(2).describe('Good checks in a row, until it is used again.'),
    unhealthyAfter: z.number().int().min(1).max(100).default(3).describe('Bad checks in a row, until it is left out.'),
    status: z
      .array(z.number().int().min(200).max(599))
      .min(1)
      .default([200])
      .describe('A list: what a target answers that is well.'),
  })
  .transform(({ timeout, ...rest }) => ({ ...rest, timeout: timeout ?? Math.min(rest.interval, 2_000) }))

const ejection = z.strictObject({
  consecutiveFailures: z
    .number()
    .int()
    .min(1)
    .max(1_000)
    .default(5)
    .describe('No connection, no answer in time, a lost connection, 502, 503 or 504, in a row.'),
  for: duration(100, 3_600_000)
    .prefault('30s')
    .describe('For how long, times how often it happened lately (10 at most).'),
  maxShare: share
    .prefault('50%')
    .describe('When more than this share of the targets would be out, by checks too, all of them are used.'),
})

export const targetRows = {
  url: httpUrl.optional().describe('`http` or `https`, with an optional base path. This, or `targets`.'),
  targets: z.array(target).min(1).max(1_000).optional().describe('Several servers of the same API.'),
  dns: dns.optional().describe('Makes every address of a name a target. Default: names are looked up on connecting.'),
  balance: z
    .union(
      [
        z.enum(['least-requests', 'round-robin']),
        z.strictObject({
          hash: z
            .string()
            .regex(
              /^(?:subject|client-ip|header:[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128})$/,
              'must be subject, client-ip or header:<name>',
            )
            .transform((text) => text.toLowerCase())
            .describe('What is always sent to the same target: `subject`, `client-ip` or `header:<name>`.'),
        }),
      ],
      'must be least-requests, round-robin or { hash: … }',
    )
    .default('least-requests')
    .describe(
      'Which target is next: the less busy one of two taken at random, each in turn, or `{ hash: … }`. All by weight.',
    ),
  health: health.optional().describe('Asks every target whether it is well. Default: none is asked.'),
  ejection: ejection.optional().describe('Leaves out targets that fail requests. Default: none is left out.'),
  slowStart: duration(0, 3_600_000)
    .prefault('10s')
    .describe('How long a target that comes, or comes back, takes to get its full share.'),
}

export type HealthSettings = z.output<typeof health>
export type EjectionSettings = z.output<typeof ejection>
export type DnsSettings = z.output<typeof dns>
export type TargetEntry = z.output<typeof target>
export type Balance = z.output<typeof targetRows.balance>

/** The targets as the file lists them; `url` is one. */
export const targetsOf = ({ url, targets }: { url?: string | undefined; targets?: TargetEntry[] | undefined }) =>
  targets ?? (url === undefined ? [] : [{ url, weight: 1, labels: {} }])

/** With where each address stands, beneath `upstreams.<name>`. */
export const addressesOf = (settings: { url?: string | undefined; targets?: TargetEntry[] | undefined }) =>
  settings.targets?.map(({ url }, index) => ({ url, path: ['targets', index, 'url'] as PropertyKey[] })) ??
  (settings.url === undefined ? [] : [{ url: settings.url, path: ['url'] as PropertyKey[] }])
