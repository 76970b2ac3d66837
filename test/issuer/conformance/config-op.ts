import { expect } from 'vitest'
import { z } from 'zod'
import { request } from '../../support/issuer.ts'
import { discover } from './relying-party.ts'
import type { ConformanceModules } from './target.ts'

const url = z.url({ protocol: /^https?$/ })
const names = z.array(z.string().min(1))
/** RFC 5646 §2.1, in the letter case of §2.1.1. */
const locale = z.string().regex(/^[a-z]{2,3}(-[A-Z][a-z]{3})?(-([A-Z]{2}|\d{3}))?$/)

/** OpenID Connect Discovery 1.0 §3, RFC 8414 §2, with what the code flow needs. */
const metadata = z.looseObject({
  issuer: url,
  authorization_endpoint: url,
  token_endpoint: url,
  userinfo_endpoint: url,
  jwks_uri: url,
  end_session_endpoint: url.optional(),
  scopes_supported: names.refine((scopes) => scopes.includes('openid'), 'must have openid'),
  response_types_supported: names.min(1),
  response_modes_supported: names.optional(),
  grant_types_supported: names.min(1),
  subject_types_supported: z.array(z.enum(['public', 'pairwise'])).min(1),
  id_token_signing_alg_values_supported: names.min(1),
  token_endpoint_auth_methods_supported: names.optional(),
  claims_supported: names.min(1),
  claims_parameter_supported: z.boolean().optional(),
  request_parameter_supported: z.boolean().optional(),
  // Left out, it means true.
  request_uri_parameter_supported: z.boolean(),
  code_challenge_methods_supported: names.min(1),
  ui_locales_supported: z.array(locale).optional(),
  claims_locales_supported: z.array(locale).optional(),
})

const privateMembers = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k']

/** The plan "Config OP". */
export const configOp: ConformanceModules = {
  'oidcc-discovery-endpoint-verification': {
    proves: 'discovery says what OpenID Connect Discovery §3 asks of a provider with the code flow',
    async run({ issuer }, requires) {
      const { status, headers, body } = await discover(issuer)
      requires('it is JSON', () => {
        expect(status).toBe(200)
        expect(headers.get('content-type')).toMatch(/^application\/json/)
      })
      requires('its members have the right form', () => expect(z.safeParse(metadata, body).error).toBeUndefined())
      requires('issuer is that of its address', () => expect(body.issuer).toBe(issuer))
      requires('issuer has neither query nor fragment', () => expect(body.issuer).not.toMatch(/[?#]/))
      requires('the code flow is listed', () => expect(body.response_types_supported).toContain('code'))
      requires('RS256 is listed for ID tokens', () =>
        expect(body.id_token_signing_alg_values_supported).toContain('RS256'),
      )
      // Where the issuer has https, so have they.
      requires('every endpoint has the scheme and host of the issuer', () => {
        const endpoints = Object.entries(body).filter(([name]) => /(_endpoint|_uri)$/.test(name))
        expect(endpoints.filter(([, endpoint]) => !String(endpoint).startsWith(`${new URL(issuer).origin}/`))).toEqual(
          [],
        )
      })
      const jwks = await request(body.jwks_uri)
      requires('the JWKS has keys for signatures, each with a kid of its own', () => {
        expect(jwks.status).toBe(200)
        const kids = jwks.body.keys.map(({ kid, use }: Record<string, string>) => use === 'sig' && kid)
        expect(kids).toEqual([...new Set(kids)])
        expect(kids.every((kid: unknown) => typeof kid === 'string')).toBe(true)
      })
      requires('the JWKS has nothing private', () =>
        expect(jwks.body.keys.flatMap(Object.keys)).not.toEqual(
          expect.arrayContaining([expect.toBeOneOf(privateMembers)]),
        ),
      )
    },
  },
}
